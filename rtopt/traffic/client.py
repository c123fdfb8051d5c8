"""A light HTTP client for streamed answers, with every event stamped as it arrives.

A general client hands over an answer when its turn in the event loop comes; here the time is taken
where the bytes arrive. The protocol itself is h11's.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import h11

from rtopt.errors import UsageError
from rtopt.traffic.exchange import Exchange, WireError

# vLLM closes an idle connection after 5 s; whoever reuses one at that moment gets an error.
_KEEP_ALIVE_S = 2.0

Take = Callable[[int, bytes], None]
"""Called with the monotonic time in ns and each event."""


class Client:
    """Posts to one server; connections that are fresh enough are used again."""

    def __init__(self, url: str, *, api_key: str | None = None, timeout_s: float = 300.0) -> None:
        """Prepare; nothing is sent.

        Raises:
            UsageError: The address is none of http or https.
        """
        where = urlsplit(url)
        if where.scheme not in ("http", "https") or not where.hostname:
            raise UsageError(f"{url}: wanted an address such as http://127.0.0.1:8000")
        self._tls = ssl.create_default_context() if where.scheme == "https" else None
        self._host = where.hostname
        self._port = where.port or (443 if self._tls else 80)
        self._timeout_s = timeout_s
        self._target = f"{where.path.rstrip('/')}/v1/completions"
        self._headers = [
            ("Host", where.netloc.rpartition("@")[2]),
            ("Content-Type", "application/json"),
            *([("Authorization", f"Bearer {api_key}")] if api_key else []),
        ]
        self._idle: list[tuple[float, _Link]] = []

    async def post(self, body: bytes, take: Take) -> Exchange:
        """Send, call `take` for each event, and give the exchange when the answer is whole.

        Raises:
            OSError: No connection, or it broke, or no end within the time.
            WireError: The answer is none of HTTP/1.1, or was cut off.
        """
        length = ("Content-Length", str(len(body)))
        headers = [*self._headers, length]
        exchange = Exchange(h11.Request(method="POST", target=self._target, headers=headers), body)
        async with asyncio.timeout(self._timeout_s):
            link = self._fresh() or await self._connect()
            try:
                await link.run(exchange, take)
            except BaseException:
                link.close()
                raise
        if exchange.keeps_open and not link.is_closed:
            self._idle.append((time.monotonic(), link))
        else:
            link.close()
        return exchange

    def close(self) -> None:
        """Close what is idle."""
        for _, link in self._idle:
            link.close()
        self._idle.clear()

    def _fresh(self) -> "_Link | None":
        while self._idle:
            since, link = self._idle.pop()
            if not link.is_closed and time.monotonic() - since < _KEEP_ALIVE_S:
                return link
            link.close()
        return None

    async def _connect(self) -> "_Link":
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(_Link, self._host, self._port, ssl=self._tls)
        return link


class _Link(asyncio.Protocol):
    """One connection, with at most one exchange at a time."""

    def __init__(self) -> None:
        self.is_closed = False
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._take: Take | None = None
        self._done: asyncio.Future[None] | None = None

    async def run(self, exchange: Exchange, take: Take) -> None:
        self._exchange, self._take = exchange, take
        self._done = asyncio.get_running_loop().create_future()
        if self._transport is None or self.is_closed:
            raise WireError("the connection was closed")
        self._transport.write(exchange.message)
        await self._done

    def close(self) -> None:
        self.is_closed = True
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if self._done is None or self._done.done() or not self._take or not self._exchange:
            self.close()
            return
        try:
            for event in self._exchange.feed(data):
                self._take(now, event)
        except WireError as error:
            self._done.set_exception(error)
            return
        if self._exchange.is_done:
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        if self._done is None or self._done.done() or self._exchange is None:
            return
        with suppress(asyncio.InvalidStateError):
            if exc is not None:
                self._done.set_exception(exc)
                return
            try:
                self._exchange.finish()
            except WireError as error:
                self._done.set_exception(error)
            else:
                self._done.set_result(None)
