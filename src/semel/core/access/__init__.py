"""Who may do what: access rules (Kafka's ACLs) and how they decide, pure."""
