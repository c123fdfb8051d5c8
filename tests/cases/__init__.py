"""Public cases with a known answer, run against the product: `python -m tests.cases FILE.jsonl`."""
