"""Stage 1: record a running engine, or read a trace."""
