"""Which model a server serves, and whether a load fits it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from rtopt.errors import EngineError, GoneError, UsageError
from rtopt.types import Ask

_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A served model."""

    model: str
    max_tokens: int | None = None
    """Longest prompt and answer together; absent when the server does not say."""
    api_key: str | None = field(default=None, repr=False)
    """What the server wants to see before it answers."""


def find_target(url: str, *, api_key: str | None = None) -> Target:
    """Ask the server for its first model.

    Raises:
        UsageError: The address is none of http or https.
        GoneError: Nobody answers there.
        EngineError: It answers, and not with a model.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url}: wanted an address such as http://127.0.0.1:8000")
    heads = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    request = Request(f"{url.rstrip('/')}/v1/models", headers=heads)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
            found = json.loads(answer.read())["data"][0]
            longest = found.get("max_model_len")
            return Target(
                model=str(found["id"]),
                max_tokens=longest if type(longest) is int else None,
                api_key=api_key,
            )
    except HTTPError as error:
        hint = "; the key belongs into RTOPT_API_KEY" if error.code == 401 else ""
        raise EngineError(f"{url}: HTTP {error.code} to /v1/models{hint}") from error
    except (URLError, OSError) as error:
        raise GoneError(f"{url}: nobody answers. Nothing was sent.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise EngineError(f"{url}: /v1/models does not name a model") from error


def check_fits(target: Target, asks: Iterable[Ask]) -> None:
    """Refuse a load that the model would refuse.

    Raises:
        UsageError: A prompt with its answer is longer than the model takes.
    """
    if target.max_tokens is None:
        return
    needs = [ask.prompt_tokens + ask.output_tokens for ask in asks]
    above = sum(need > target.max_tokens for need in needs)
    if above:
        raise UsageError(
            f"{above} of {len(needs)} requests need more than the {target.max_tokens} tokens that"
            f" {target.model} takes (most: {max(needs)}): --scale-lengths, or --max-prompt and"
            " --max-output. Nothing was sent."
        )
