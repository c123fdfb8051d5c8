"""One thing that was looked at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was looked at, what was found, and what would fix it."""

    name: str
    found: str
    is_ok: bool
    is_needed: bool = True
    """False: good to have."""
    fix: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the loop cannot run because of it."""
        return self.is_needed and not self.is_ok

    @property
    def mark(self) -> str:
        """ok, MISSING, or - for something that is good to have."""
        return "ok" if self.is_ok else ("MISSING" if self.is_needed else "-")

    def line(self) -> str:
        """For a person: one line, and one more for what fixes it."""
        fix = f"\n   {self.fix}" if self.fix else ""
        return f"{self.mark:2} {self.name}: {self.found}{fix}"

    def as_dict(self) -> dict[str, object]:
        """For --json."""
        return {
            "name": self.name,
            "found": self.found,
            "ok": self.is_ok,
            "needed": self.is_needed,
            "fix": self.fix,
        }
