"""Levers: one file each, named like its id."""
