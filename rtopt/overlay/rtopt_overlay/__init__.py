"""rtopt inside vLLM: records steps and requests, moves live knobs, and undoes what nobody renews.

Standard library and what vLLM brings, nothing else. Every hook is guarded (`border.py`): an
exception of ours is logged once and the engine goes on without us.
"""

__version__ = "0.1.0"
