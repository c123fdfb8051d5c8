"""Engines: live servers, servers that we launch, and replays.

`connect` is the one place that decides which kind of server answers at a URL.
"""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from rtopt.errors import EngineError, UsageError

if TYPE_CHECKING:
    from rtopt.engines.vllm_metrics import MetricsEngine
    from rtopt.engines.vllm_server import VllmServer

__all__ = ["connect"]

_PROBES = 3


def connect(
    url: str, *, token_file: Path | None = None, lease_s: float | None = None
) -> "VllmServer | MetricsEngine":
    """Find out what answers at `url`: a vLLM with the overlay, or one with metrics only.

    Raises:
        UsageError: Not a URL of a server.
        EngineError: Nobody listens, it is not vLLM, or several servers answer in turn.
        UnavailableError: The overlay there is of another generation.
    """
    from rtopt.engines.secret import find_token
    from rtopt.engines.vllm_metrics import MetricsEngine
    from rtopt.engines.vllm_server import LEASE_S, VllmServer

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url}: not a server's URL; wanted http://HOST:PORT")
    if _has_overlay(url):
        token = find_token(url, token_file)
        boots = set()
        for _ in range(_PROBES):
            # A fresh connection each time: a balancer spreads connections, not requests.
            server = VllmServer(url, token=token, lease_s=lease_s or LEASE_S)
            boots.add(server.state().boot)
            server.close()
        if len(boots) > 1:
            raise EngineError(
                f"{url}: {len(boots)} different engines answered {_PROBES} questions, so this is a"
                " load balancer in front of several servers. Name one server. Nothing was changed."
            )
        return VllmServer(url, token=token, lease_s=lease_s or LEASE_S)
    return MetricsEngine(url)


def _has_overlay(url: str) -> bool:
    """Whether /rtopt/state is answered by an overlay, even one that wants a token."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/rtopt/state", timeout=15, trust_env=False)
    except (httpx.TransportError, httpx.InvalidURL):
        return False  # the metrics probe names the reason
    try:
        body = answer.json()
    except ValueError:
        return False
    return isinstance(body, dict) and ("result" in body or isinstance(body.get("error"), dict))
