"""What a partition knows beside its bytes: producers, open and aborted transactions, epochs."""
