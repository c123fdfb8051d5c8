"""Sends one ask as a completion, and times its answer."""

import json
import time

from rtopt.traffic.answer import Answer
from rtopt.traffic.client import Client
from rtopt.traffic.exchange import WireError
from rtopt.traffic.prompts import Prompts
from rtopt.types import Ask


class Asker:
    """One server, one model, one set of prompts."""

    def __init__(
        self,
        client: Client,
        prompts: Prompts,
        *,
        model: str,
        start_ns: int,
        stream: bool,
        salt: str | None = None,
    ) -> None:
        """Prepare.

        Args:
            client: Of the server.
            prompts: Where the tokens come from.
            model: Served name.
            start_ns: Monotonic time of the load's start.
            stream: Ask for each output as it is made; else only the whole is timed.
            salt: Keeps this run out of the prefix cache of every other; None: shared with all.
        """
        self._client, self._prompts, self._start_ns = client, prompts, start_ns
        self._stream = stream
        self._open = f'{{"model":{json.dumps(model)},"prompt":'
        salted = f',"cache_salt":{json.dumps(salt)}' if salt else ""
        streamed = ',"stream":true,"stream_options":{"include_usage":true}' if stream else ""
        self._close = f',"ignore_eos":true,"temperature":0.0{streamed}{salted}}}'

    def body(self, number: int, ask: Ask) -> bytes:
        """What to send; made ahead of time, since a long prompt takes longer than a deadline."""
        prompt = self._prompts.text(number, ask)
        return f'{self._open}{prompt},"max_tokens":{ask.output_tokens}{self._close}'.encode("ascii")

    async def ask(self, number: int, body: bytes, due_ns: int | None) -> Answer:
        """Send now, and wait for the whole answer; a failure is part of the answer."""
        sent = time.monotonic_ns()
        answer = Answer(number=number, sent_ns=sent - self._start_ns)
        if due_ns is not None:
            answer.late_ms = (sent - due_ns) / 1e6
        last = sent

        def take(now: int, event: bytes) -> None:
            nonlocal last
            if event == b"[DONE]":
                return
            if event.startswith(b'{"error"'):
                answer.error = "error_event"
                return
            # Usage comes in an event of its own, whose list of choices is empty.
            if b'"choices":[]' in event:
                _count(answer, event)
                return
            if answer.first_ms is None:
                answer.first_ms = (now - sent) / 1e6
            else:
                answer.gaps_ms.append((now - last) / 1e6)
            last = now

        try:
            exchange = await self._client.post(body, take)
        except (OSError, WireError) as error:
            answer.error = type(error).__name__
            return answer
        if exchange.status != 200:
            answer.error = f"http_{exchange.status}"
        elif not self._stream:
            last = time.monotonic_ns()
            _count(answer, bytes(exchange.body))
        elif answer.first_ms is None:
            answer.error = answer.error or "no_output"
        if answer.error is None:
            answer.e2e_ms = (last - sent) / 1e6
        return answer


def _count(answer: Answer, event: bytes) -> None:
    try:
        usage = json.loads(event)["usage"]
        answer.prompt_tokens = int(usage["prompt_tokens"])
        answer.output_tokens = int(usage["completion_tokens"])
    except (ValueError, KeyError, TypeError):
        answer.error = "bad_usage"
