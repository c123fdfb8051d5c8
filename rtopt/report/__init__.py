"""Stage 5: claim, evidence, intervention, delta, in one file."""
