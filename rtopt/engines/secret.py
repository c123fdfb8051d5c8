"""Secrets: the token that lets a controller change an engine, and the server's API key."""

import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from rtopt.errors import UsageError
from rtopt.overlay.rtopt_overlay.wire import TOKEN_ENV, TOKEN_FILE_ENV
from rtopt.storage import state_root

API_KEY_ENV = "RTOPT_API_KEY"
API_KEY_FILE_ENV = "RTOPT_API_KEY_FILE"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def new_token_file(port: int) -> Path:
    """Write a fresh token for the server on `port`, readable by this user only."""
    path = _file_of(port)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(secrets.token_urlsafe(32) + "\n")
    return path


def find_token(url: str, given: Path | None = None) -> str | None:
    """Token for the server at `url`: the file given, else the environment, else `rtopt serve`'s.

    None when there is none: then nothing can be changed.

    Raises:
        UsageError: The file that was named cannot be read, or what it holds is no token.
    """
    named = given or (Path(p) if (p := os.environ.get(TOKEN_FILE_ENV)) else None)
    if named is not None:
        return _read(named)
    if token := os.environ.get(TOKEN_ENV):
        return _checked(token, TOKEN_ENV)
    parts = urlsplit(url)
    if parts.hostname in _LOOPBACK and parts.port and (ours := _file_of(parts.port)).is_file():
        return _read(ours)
    return None


def find_api_key() -> str | None:
    """Key for the OpenAI-compatible API: in RTOPT_API_KEY_FILE's file, else in RTOPT_API_KEY.

    Raises:
        UsageError: The file cannot be read, or what was given is no key.
    """
    if path := os.environ.get(API_KEY_FILE_ENV):
        return _read(Path(path), "API key file")
    key = os.environ.get(API_KEY_ENV)
    return _checked(key, API_KEY_ENV) if key else None


def _read(path: Path, what: str = "token file") -> str:
    where = f"{what} {path.name}"
    try:
        return _checked(path.read_text(encoding="utf-8").strip(), where)
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}. Nothing was sent.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: not text; wanted one line. Nothing was sent.") from error


def _checked(token: str, where: str) -> str:
    """The token, when an HTTP header can carry it; it is never quoted."""
    if not token:
        raise UsageError(f"{where}: empty; wanted one line. Nothing was sent.")
    if not (token.isascii() and token.isprintable()):
        raise UsageError(f"{where}: wanted one line of printable ASCII. Nothing was sent.")
    return token


def _file_of(port: int) -> Path:
    return state_root() / "servers" / f"{port}.token"
