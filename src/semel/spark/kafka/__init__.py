"""A small blocking Kafka client for Spark's driver and tasks, and transactions lent to tasks."""
