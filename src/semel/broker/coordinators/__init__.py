"""Coordinators at work: the runtime of their machines, transactions, groups, and markers."""
