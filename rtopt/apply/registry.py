"""Finding levers: the built-in folder, a folder of the user's, and installed plug-ins.

Built-in levers are read the same way as a user's: one file, one `LEVER`, named like its id.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from rtopt.errors import RtoptError, UsageError
from rtopt.types import Lever

GROUP = "rtopt.levers"
"""Entry-point group of plug-ins; each entry gives a Lever, or a module that has LEVER."""

_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RtoptError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What running somebody else's file can raise."""


def load_levers(extra: Path | None = None) -> dict[str, Lever]:
    """Every lever by its id: built in, then from the folder `extra`, then from plug-ins.

    Raises:
        UsageError: A file is broken, has no LEVER, or its id is taken; the message names the file.
    """
    levers: dict[str, Lever] = {}
    origins: dict[str, str] = {}
    for origin, lever in _found(extra):
        if lever.id in levers:
            raise UsageError(
                f"{origin}: lever id {lever.id!r} is already taken by {origins[lever.id]}; wanted"
                " an id of its own. Nothing was changed.",
                file=origin,
            )
        levers[lever.id], origins[lever.id] = lever, origin
    return levers


def find_lever(levers: Mapping[str, Lever], id_: str) -> Lever:
    """The lever of that id.

    Raises:
        UsageError: There is none; the message lists the known ones.
    """
    if id_ not in levers:
        raise UsageError(
            f"lever {id_!r} is unknown. Known: {', '.join(sorted(levers))}. Nothing was changed.",
            name=id_,
        )
    return levers[id_]


def built_in_folder() -> Path:
    """The folder levers/: installed as rtopt.levers, or beside rtopt/ in a plain checkout."""
    spec = find_spec("rtopt.levers")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    beside = Path(__file__).parents[2] / "levers"
    if not beside.is_dir():
        raise UsageError(
            f"levers: neither the package rtopt.levers nor the folder {beside} is there;"
            " install rtopt again."
        )
    return beside


def _found(extra: Path | None) -> Iterator[tuple[str, Lever]]:
    """Each lever with where it came from."""
    yield from _in_folder(built_in_folder())
    if extra is not None:
        if not extra.is_dir():
            raise UsageError(f"--levers {extra}: not a folder. Nothing was changed.")
        yield from _in_folder(extra)
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield _of_entry(entry)


def _in_folder(folder: Path) -> Iterator[tuple[str, Lever]]:
    files = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    if not files:
        raise UsageError(f"{folder}: no lever in it (wanted files *.py). Nothing was changed.")
    for path in files:
        lever = _checked(_run(path), str(path))
        if lever.id != path.stem:
            raise UsageError(
                f"{path}: LEVER.id is {lever.id!r}, wanted {path.stem!r} like the file's name."
                " Nothing was changed.",
                file=str(path),
            )
        yield str(path), lever


def _run(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"rtopt_lever_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except _FAULTS as error:
        raise UsageError(
            f"{path}: cannot be loaded: {type(error).__name__}: {error}. Nothing was changed.",
            file=str(path),
        ) from error
    return module


def _of_entry(entry: EntryPoint) -> tuple[str, Lever]:
    origin = f"entry point {entry.name} = {entry.value}"
    if entry.dist is not None:
        origin += f" of {entry.dist.name}"
    try:
        found = entry.load()
    except _FAULTS as error:
        raise UsageError(
            f"{origin}: cannot be loaded: {type(error).__name__}: {error}. Nothing was changed.",
            file=origin,
        ) from error
    return origin, found if isinstance(found, Lever) else _checked(found, origin)


def _checked(module: object, origin: str) -> Lever:
    lever = getattr(module, "LEVER", None)
    if not isinstance(lever, Lever):
        raise UsageError(
            f"{origin}: found {'no LEVER' if lever is None else type(lever).__name__}, wanted"
            " LEVER = Lever(...). Nothing was changed.",
            file=origin,
        )
    return lever
