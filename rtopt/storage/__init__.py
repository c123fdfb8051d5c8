"""Files: traces, nouns, runs, append-only logs."""
