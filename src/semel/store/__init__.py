"""A log of bytes on disk (`interface` is the contract): it knows no transactions.

Beside it: recovery after a crash, group commit, retention and compaction.
"""
