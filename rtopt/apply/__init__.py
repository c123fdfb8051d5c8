"""Stage 4: try a change behind a statistical gate; keep it or restore."""
