"""Settings of brokers, topics and groups: what there are, which are in force, how they change."""
