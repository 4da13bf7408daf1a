"""The transaction coordinator as pure decisions: states, records, one module per kind of move."""
