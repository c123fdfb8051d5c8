"""Asking a server without the overlay: its metrics page, version and models.

Every question goes over a fresh connection, has a limit in time and size, and follows no redirect.
"""

import json
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from rtopt.engines.prometheus import Scrape, difference, parse_scrape
from rtopt.errors import EngineError, UsageError

NUM_PROBES: Final = 4
"""Connections that are compared: a balancer that takes turns shows itself at the second."""
MAX_ANSWER_BYTES: Final = 1 << 25
MAX_ANSWER_S: Final = 15.0
_TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)
# A balancer spreads connections, not requests.
_FRESH: Final = httpx.Limits(max_keepalive_connections=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """What answered at a URL."""

    version: str | None
    """As /version says; absent when it does not."""
    model: str | None
    """First served model, without a path; absent when nothing names it."""
    max_model_len: int | None
    """Absent when the list of models is behind an API key."""
    scrape: Scrape
    """The last page read."""


def open_client(url: str) -> httpx.Client:
    """Make a client for a server; nothing is sent yet.

    Raises:
        UsageError: Not the URL of an HTTP server.
    """
    wanted = "wanted http://HOST:PORT"
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if not has_host:
            raise UsageError(f"{url}: not a server's URL; {wanted}")
        return httpx.Client(
            base_url=url.rstrip("/"),
            timeout=_TIMEOUT,
            limits=_FRESH,
            follow_redirects=False,
            trust_env=False,
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise UsageError(f"{url}: not a URL ({error}); {wanted}") from error


def address(client: httpx.Client) -> str:
    """The server's address for messages, without a user or password."""
    return str(client.base_url.copy_with(username=None, password=None)).rstrip("/")


def probe(client: httpx.Client) -> ServerKind:
    """Find out what answers, over several connections.

    Raises:
        EngineError: Nobody answers, it is not vLLM, or several servers answer in turn.
    """
    scrapes = [scrape(client) for _ in range(NUM_PROBES)]
    for before, after in pairwise(scrapes):
        reason = difference(before, after)
        if reason is not None:
            raise EngineError(
                f"{address(client)}: {reason} from one question to the next, so this is a load"
                " balancer in front of several servers. Name one server. Nothing was changed."
            )
    version = _object(client, "/version").get("version")
    models = _object(client, "/v1/models").get("data")
    first = models[0] if isinstance(models, list) and models else None
    card: dict[str, Any] = first if isinstance(first, dict) else {}
    model, length = card.get("id", scrapes[-1].model), card.get("max_model_len")
    return ServerKind(
        version=version if isinstance(version, str) else None,
        model=model.rstrip("/").rpartition("/")[2] if isinstance(model, str) else None,
        max_model_len=length if isinstance(length, int) else None,
        scrape=scrapes[-1],
    )


def scrape(client: httpx.Client) -> Scrape:
    """Read the metrics page once.

    Raises:
        EngineError: Nobody answers, or it is not the page of a vLLM server.
    """
    where = f"{address(client)}/metrics"
    status, text, location = _get(client, "/metrics")
    if 300 <= status < 400:
        raise EngineError(
            f"{where}: answered {status}, a redirect to {location or 'nowhere'}; wanted the server"
            " itself. Redirects are not followed: give the address that it leads to."
        )
    if status == 404:
        raise EngineError(
            f"{where}: answered 404, wanted vLLM's metrics page. Is this vLLM's OpenAI-compatible"
            " server? Behind a proxy a path prefix belongs into the URL: http://HOST:PORT/PREFIX."
        )
    if status != 200:
        raise EngineError(f"{where}: answered {status}, wanted 200 and vLLM's metrics page")
    try:
        page = parse_scrape(text)
    except (ValueError, KeyError, IndexError) as error:
        raise EngineError(f"{where}: not a Prometheus page, so this is not vLLM") from error
    if not page.series:
        raise EngineError(
            f"{where}: no series begins with vllm: so this is not vLLM, or it was started with"
            " --disable-log-stats"
        )
    return page


def _object(client: httpx.Client, path: str) -> dict[str, Any]:
    """A JSON object; empty when the server refuses to show it, for example without its API key."""
    status, text, _ = _get(client, path)
    if status != 200:
        return {}
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _get(client: httpx.Client, path: str) -> tuple[int, str, str | None]:
    """Status, text and redirect target of an answer."""
    where = address(client)
    until_s = time.monotonic() + MAX_ANSWER_S
    body = bytearray()
    try:
        with client.stream("GET", path) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise EngineError(f"{where}{path}: an answer without end, so this is not vLLM")
                if time.monotonic() > until_s:
                    raise EngineError(f"{where}{path}: no whole answer in {MAX_ANSWER_S:g} s")
    except httpx.ConnectError as error:
        raise EngineError(
            f"{where}: nobody listens there ({error}). Is the server up, and the port right?"
        ) from error
    except httpx.TimeoutException as error:
        raise EngineError(f"{where}{path}: no answer in time") from error
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise EngineError(f"{where}{path}: no proper HTTP answer ({error})") from error
    text = body.decode("utf-8", errors="replace")
    return response.status_code, text, response.headers.get("location")
