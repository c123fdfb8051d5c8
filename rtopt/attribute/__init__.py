"""Stage 3: name a cause with its evidence, or abstain."""
