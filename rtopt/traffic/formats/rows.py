"""Gathers the requests that a file shows, and what of it was not readable."""

from pathlib import Path
from typing import Final

from rtopt.errors import TraceError
from rtopt.types import Ask, Load, Workload

_MAX_TOKENS: Final = 2**31
_MAX_NS: Final = 2**62


class Rows:
    """Requests in the order of the file, with times on the file's own clock."""

    def __init__(self, path: Path) -> None:
        self.notes: list[str] = []
        self.unseen = 0
        """Requests that the file names and does not show whole, for example failed ones."""
        self._path = path
        self._asks: list[tuple[int, int, int, tuple[int, ...]]] = []
        self._damaged = 0
        self._first_damage = ""

    def __len__(self) -> int:
        return len(self._asks)

    def add(
        self, where: str, at_ns: object, prompt: object, output: object, blocks: object = ()
    ) -> None:
        """One request; what cannot be one is counted as damaged, an empty answer as unseen."""
        wrong = (
            _wrong("time", at_ns, -_MAX_NS, _MAX_NS)
            or _wrong("prompt tokens", prompt, 0, _MAX_TOKENS)
            or _wrong("output tokens", output, 0, _MAX_TOKENS)
            or _wrong_blocks(blocks)
        )
        if wrong:
            self.damage(where, wrong)
            return
        assert isinstance(at_ns, int)
        assert isinstance(prompt, int)
        assert isinstance(output, int)
        assert isinstance(blocks, list | tuple)
        if prompt == 0 or output == 0:
            self.unseen += 1
            return
        self._asks.append((at_ns, prompt, output, tuple(blocks)))

    def damage(self, where: str, why: str) -> None:
        """One part of the file that cannot be read."""
        self._damaged += 1
        self._first_damage = self._first_damage or f"{where}: {why}"

    def workload(self, source: str, *, block_tokens: int | None = None) -> Workload:
        """The readable requests, the first at time zero, with notes on the rest.

        Raises:
            TraceError: Not one request is readable.
        """
        if not self._asks:
            why = self._first_damage or "no request with a prompt and an answer"
            raise TraceError(f"{self._path}: no request in it is readable ({why})")
        asks = sorted(self._asks, key=lambda ask: ask[0])
        first, last = asks[0][0], asks[-1][0]
        notes = list(self.notes)
        if self._damaged:
            notes.append(f"{self._damaged} damaged lines left out, the first {self._first_damage}")
        if self.unseen:
            notes.append(f"{self.unseen} requests without a whole answer left out")
        return Workload(
            load=Load(kind="open"),
            asks=tuple(
                Ask(
                    arrival_ns=at - first,
                    prompt_tokens=prompt,
                    output_tokens=output,
                    blocks=blocks[: prompt // block_tokens] if block_tokens else (),
                )
                for at, prompt, output, blocks in asks
            ),
            # One more mean gap, so that requests over duration is the rate.
            duration_ns=max(1, (last - first) * len(asks) // max(1, len(asks) - 1)),
            source=source,
            block_tokens=block_tokens,
            missed_frac=self.unseen / (self.unseen + len(asks)) if self.unseen else None,
            notes=tuple(notes),
        )


def _wrong(what: str, value: object, low: int, high: int) -> str:
    if type(value) is not int:
        return f"{what}: found {type(value).__name__}, wanted a whole number"
    return "" if low <= value <= high else f"{what}: {str(value)[:20]} is out of range"


def _wrong_blocks(blocks: object) -> str:
    if not isinstance(blocks, list | tuple):
        return f"blocks: found {type(blocks).__name__}, wanted a list"
    return "" if all(type(b) is int for b in blocks) else "blocks: one is no whole number"
