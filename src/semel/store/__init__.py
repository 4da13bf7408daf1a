"""A log of bytes, on disk or in memory (`interface` is the contract): it knows no transactions.

Beside it: recovery after a crash, group commit, retention and compaction.
"""
