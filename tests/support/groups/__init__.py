"""A group coordinator on the bench, and members that misbehave on purpose."""
