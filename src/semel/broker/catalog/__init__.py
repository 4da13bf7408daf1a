"""What the cluster durably knows of itself, and the rules for making topics."""
