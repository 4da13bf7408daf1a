"""What an administrator asks of a cluster, by noun: topics, groups, transactions."""
