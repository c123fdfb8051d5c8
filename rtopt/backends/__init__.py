"""Readers of machine state, one per vendor."""
