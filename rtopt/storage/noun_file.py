"""One noun in one JSON file: {"noun": "Prediction", "schema": 1, "body": {...}}."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, TypeVar

from rtopt.errors import TraceError, UsageError
from rtopt.storage.codec import dump, from_json, parse, to_json

T = TypeVar("T")

SCHEMA: Final = 1


def save(noun: object, path: Path) -> None:
    """Write a noun; a reader sees the old file or the whole new one, never a part.

    Raises:
        UsageError: The file cannot be written there; what was there before still is.
    """
    write_whole(path, {"noun": type(noun).__name__, "schema": SCHEMA, "body": to_json(noun)})


def load(cls: type[T], path: Path) -> T:
    """Read a noun of this class.

    Raises:
        TraceError: There is no such file, or it is damaged, of another noun, or too new.
    """
    data = read_object(path)
    noun, schema = data.get("noun"), data.get("schema")
    if not isinstance(noun, str) or not isinstance(schema, int):
        raise TraceError(
            f"{path}: not a file of rtopt's (no noun or schema); wanted {cls.__name__}"
        )
    if noun != cls.__name__:
        raise TraceError(f"{path}: holds a {noun}, wanted a {cls.__name__}")
    if schema > SCHEMA:
        raise TraceError(f"{path}: schema {schema} is newer than this rtopt's {SCHEMA}")
    return from_json(cls, data.get("body"), where=str(path))


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        TraceError: It cannot be read, or holds something else.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    data = parse(text, where=str(path))
    if not isinstance(data, dict):
        raise TraceError(f"{path}: found {type(data).__name__}, wanted a JSON object")
    return data


def write_whole(path: Path, data: dict[str, Any]) -> None:
    """Write one JSON object through a temporary file beside it, and rename.

    Raises:
        UsageError: The file cannot be written there; what was there before still is.
    """
    write_text(path, dump(data, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text; a reader sees the old file or the whole new one, never a part.

    Raises:
        UsageError: The file cannot be written there; what was there before still is.
    """
    try:
        with NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
