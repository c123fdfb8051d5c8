"""rtopt makes a running vLLM faster, and proves it."""
