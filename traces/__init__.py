"""The trace format: its JSON schema, its description, and small recorded samples."""
