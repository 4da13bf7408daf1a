"""The exactly-once sink: one Kafka transaction per micro-batch."""
