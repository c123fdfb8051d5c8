"""Nouns turned into sentences and tables: pure, one file per step of the argument."""
