"""Statistics that several stages use."""
