"""Classic groups: one member leads and assigns; the coordinator keeps them in step."""
