"""Consumer groups (KIP-848): the coordinator assigns, and leads each member to its target."""
