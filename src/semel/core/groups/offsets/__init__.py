"""Committed offsets: requests, transactions, expiry."""
