"""Engines: live servers, servers that we launch, and replays.

`connect` is the one place that decides which kind of server answers at a URL.
"""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rtopt.errors import EngineError, RtoptError

if TYPE_CHECKING:
    import httpx

    from rtopt.engines.vllm_metrics import MetricsEngine
    from rtopt.engines.vllm_server import VllmServer

__all__ = ["connect"]

_PROBES = 3


def connect(
    url: str, *, token_file: Path | None = None, lease_s: float | None = None
) -> "VllmServer | MetricsEngine":
    """Find out what answers at `url`: a vLLM with the overlay, or one with metrics only.

    Where the overlay says that it cannot reach every engine, as with several data-parallel ones,
    the metrics page is read, and nothing can be changed.

    Raises:
        UsageError: Not a URL of a server.
        EngineError: Nobody listens, it is not vLLM, or several servers answer in turn.
        UnavailableError: The overlay there is of another generation.
    """
    from rtopt.engines.client import address, ask, open_client
    from rtopt.engines.secret import find_token
    from rtopt.engines.support import cards_of
    from rtopt.engines.support_reading import ReadingEngine
    from rtopt.engines.vllm_metrics import MetricsEngine
    from rtopt.engines.vllm_server import LEASE_S, VllmServer

    with open_client(url) as client:
        (has_overlay, why), where = _overlay(client), address(client)
    if not has_overlay or why is not None:
        engine = MetricsEngine(url) if why is None else ReadingEngine(url, why)
        try:
            engine.state()  # says so when it is no vLLM, or several
        except RtoptError:
            engine.close()
            raise
        return engine
    token = find_token(url, token_file)
    boots = set()
    for _ in range(_PROBES):
        # A fresh connection each time: a balancer spreads connections, not requests.
        with closing(VllmServer(url, token=token, lease_s=lease_s or LEASE_S)) as server:
            boots.add(server.state().boot)
    if len(boots) > 1:
        raise EngineError(
            f"{where}: {len(boots)} different engines answered {_PROBES} questions, so this is a"
            " load balancer in front of several servers. Name one server. Nothing was changed."
        )
    with open_client(url) as client:
        cards = cards_of(ask(client, "/v1/models").text)
    return VllmServer(url, token=token, lease_s=lease_s or LEASE_S, cards=cards)


def _overlay(client: "httpx.Client") -> tuple[bool, str | None]:
    """Whether /rtopt/state is answered by an overlay, and why it cannot speak for its engine.

    An overlay that wants a token is one too. Many a server gives its errors as an "error" object,
    so the overlay's own codes are asked for.
    """
    from rtopt.engines.client import ask
    from rtopt.overlay.rtopt_overlay.wire import PREFIX, STATUS

    answer = ask(client, f"{PREFIX}/state")
    try:
        body = json.loads(answer.text)
    except (ValueError, RecursionError):
        return False, None
    match body:
        case {"result": {"wire": _}}:
            return answer.status == 200, None
        case {"error": {"code": str(code), "message": str(message)}}:
            is_ours = STATUS.get(code) == answer.status
            why = message.rstrip(".").removesuffix(". Nothing was changed")
            return is_ours, why if is_ours and code == "unavailable" else None
        case _:
            return False, None
