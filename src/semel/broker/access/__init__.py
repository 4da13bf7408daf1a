"""Who a client is, and what it may do: TLS and SASL of listeners, access rules, quotas."""
