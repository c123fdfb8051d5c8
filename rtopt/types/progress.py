"""How a long piece of work says where it is; `cli/` shows it, a library user may ignore it."""

from collections.abc import Callable

Progress = Callable[[str, float | None], None]
"""Called with a short sentence and the share that is done (0..1), or None when unknown."""


def silent(message: str, done: float | None = None) -> None:
    """Say nothing: the default."""
