"""The client's decisions, pure: transactions, batches to send, positions to read, membership."""
