"""Finding the files that one event window made, where their folder shows on this machine."""

from pathlib import Path

_PATTERN = "*.pt.trace.json*"


class FileSearch:
    """What a folder holds before and after a window."""

    def __init__(self, folder: Path | None, prefix: str) -> None:
        """Look at what is there before the window; None: the folder is not known here."""
        self._folder, self._prefix = folder, prefix
        self._before = frozenset(self._traces())

    def found(self) -> tuple[Path, ...]:
        """The window's files: by our prefix, or, where a server ignores it, the new ones."""
        fresh = [path for path in self._traces() if path not in self._before]
        ours = [path for path in fresh if path.name.startswith(self._prefix)]
        return tuple(ours or fresh)

    def where(self, files: tuple[Path, ...]) -> str:
        """One sentence for a person: where the files lie."""
        if files:
            return (
                f"files of events in the server's torch_profiler_dir on this machine: {len(files)}"
            )
        if self._folder is None:
            return (
                "the files of events lie on the server's disk, in its torch_profiler_dir, and their"
                f" names begin with {self._prefix} (before vLLM 0.32: the newest ones). Copy them"
                " here, or name the folder where they show"
            )
        return (
            "no file of events appeared in the server's torch_profiler_dir, or in the folder that"
            " was named for it; is it the same one?"
        )

    def _traces(self) -> list[Path]:
        if self._folder is None:
            return []
        return sorted(path for path in self._folder.glob(_PATTERN) if path.is_file())
