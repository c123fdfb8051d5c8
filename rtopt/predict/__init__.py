"""Stage 2: what the engine should do, and how far it is from that."""
