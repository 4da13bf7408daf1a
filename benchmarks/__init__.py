"""Benchmarks: Semel beside Apache Kafka in one run. `python -m benchmarks [name …]`."""
