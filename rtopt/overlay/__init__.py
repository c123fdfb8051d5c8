"""The only code that runs inside the processes of vLLM."""
