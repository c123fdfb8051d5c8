"""The secret that lets a controller change the engine."""

import hmac
import os
from pathlib import Path

from .wire import TOKEN_ENV, TOKEN_FILE_ENV


def read_token() -> str | None:
    """Read the token from the file named in RTOPT_TOKEN_FILE, else from RTOPT_TOKEN.

    None when neither is set, or the file cannot be read or is empty: then the overlay is read-only.
    """
    path = os.environ.get(TOKEN_FILE_ENV)
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None
    return os.environ.get(TOKEN_ENV, "").strip() or None


def matches(given: str | None, token: str | None) -> bool:
    """Compare in constant time; no token configured or none given never matches."""
    if not given or not token:
        return False
    return hmac.compare_digest(given.encode(), token.encode())
