"""Real brokers in processes of their own: Semel's and Apache Kafka's."""
