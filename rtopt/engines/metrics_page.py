"""Asking a server without the overlay: its metrics page, version and models."""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import httpx

from rtopt.engines.client import address, ask
from rtopt.engines.prometheus import Scrape, difference, parse_scrape
from rtopt.errors import EngineError

NUM_PROBES: Final = 4
"""Connections that are compared: a balancer that takes turns shows itself at the second."""


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
    answer = ask(client, "/metrics")
    status = answer.status
    if 300 <= status < 400:
        raise EngineError(
            f"{where}: answered {status}, a redirect to {answer.location or 'nowhere'}; wanted the"
            " server itself. Redirects are not followed: give the address that it leads to."
        )
    if status == 404:
        raise EngineError(
            f"{where}: answered 404, wanted vLLM's metrics page. Is this vLLM's OpenAI-compatible"
            " server? Behind a proxy a path prefix belongs into the URL: http://HOST:PORT/PREFIX."
        )
    if status != 200:
        raise EngineError(f"{where}: answered {status}, wanted 200 and vLLM's metrics page")
    try:
        page = parse_scrape(answer.text)
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
    answer = ask(client, path)
    if answer.status != 200:
        return {}
    try:
        found = json.loads(answer.text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
