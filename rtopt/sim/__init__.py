"""The engine's own scheduler on a virtual clock."""
