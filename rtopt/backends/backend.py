"""What a kind of hardware must be able to say, and the loop that reads a source piece by piece."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rtopt.types import Accelerator

Values = Mapping[str, float]


class Reader(Protocol):
    """One source of state, read again and again by one thread."""

    @property
    def source(self) -> str:
        """Its name in a Sample, for example "cpu" or "nvidia:0"."""
        ...

    @property
    def failures(self) -> int:
        """Readings that failed so far."""
        ...

    def read(self) -> dict[str, float]:
        """Read everything once; what failed is not in the answer and is counted."""
        ...


class Backend(Protocol):
    """A kind of hardware; making one raises UnavailableError where there is none."""

    def accelerators(self) -> tuple[Accelerator, ...]:
        """Give its devices, as the vendor's library names them."""
        ...

    def open_readers(self) -> Sequence[Reader]:
        """Give one reader per source of state."""
        ...


class PiecewiseReader:
    """Reads a source by several calls, each of which may fail alone."""

    def __init__(
        self,
        source: str,
        pieces: Mapping[str, Callable[[], Values]],
        failing: tuple[type[Exception], ...],
    ) -> None:
        """Join the pieces to a reader.

        Args:
            source: Its name in a Sample.
            pieces: Name of the piece to what reads it: some values by name.
            failing: What a piece raises when it could not be read.
        """
        self._source = source
        self._pieces = pieces
        self._failing = failing
        self._failures = 0

    @property
    def source(self) -> str:
        """Its name in a Sample."""
        return self._source

    @property
    def failures(self) -> int:
        """Readings that failed so far."""
        return self._failures

    def read(self) -> dict[str, float]:
        """Read every piece once; one that failed is absent and counted."""
        values: dict[str, float] = {}
        for piece in self._pieces.values():
            try:
                values.update(piece())
            except self._failing:
                self._failures += 1
        return values
