"""Who may do how much: what quotas and credentials a client may ask for."""
