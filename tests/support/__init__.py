"""What only the tests and benchmarks need: brokers, conversations, simulated worlds."""
