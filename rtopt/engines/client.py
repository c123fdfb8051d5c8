"""An HTTP client for a server of which only the address is known.

A question of `ask` has a limit in time and size, and no client follows a redirect.

An https:// server is trusted by the public authorities, or by those in the file that SSL_CERT_FILE
names, and in no other way. An API key goes to /v1 alone, and only once the server has asked for it.
"""

import os
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx

from rtopt.engines.secret import find_api_key
from rtopt.errors import EngineError, GoneError, UsageError

MAX_ANSWER_BYTES: Final = 1 << 25
MAX_ANSWER_S: Final = 15.0
TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)
# A balancer spreads connections, not requests.
_FRESH: Final = httpx.Limits(max_keepalive_connections=0)
# vLLM closes an idle connection after 5 s; whoever reuses one at that moment gets an error.
_KEEP_ALIVE_S: Final = 2.0
_SHARED: Final = httpx.Limits(max_keepalive_connections=5, keepalive_expiry=_KEEP_ALIVE_S)
_WANTED: Final = "wanted http://HOST:PORT"
CA_ENV: Final = "SSL_CERT_FILE"
_OTHER_NAME: Final = 62
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH; 64 is the same of an address."""
_OTHER_ADDRESS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    text: str
    location: str | None
    """Where a redirect leads; it is not followed."""


def open_client(
    url: str, *, timeout: httpx.Timeout = TIMEOUT, keeps_alive: bool = False
) -> httpx.Client:
    """Make a client for a server; nothing is sent yet.

    Args:
        url: The server's address; a user and password in it are sent, and never shown.
        timeout: For connecting, and between two pieces of an answer.
        keeps_alive: Whether questions may share a connection.

    Raises:
        UsageError: Not the URL of an HTTP server, or the file of authorities cannot be used.
    """
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if not has_host:
            raise UsageError(f"{_shown(url)}: not a server's URL; {_WANTED}")
        ca_file = os.environ.get(CA_ENV) or None
        return httpx.Client(
            base_url=url.rstrip("/"),
            timeout=timeout,
            limits=_SHARED if keeps_alive else _FRESH,
            follow_redirects=False,
            trust_env=False,
            verify=_trust(is_encrypted=parts.scheme == "https", ca_file=ca_file),
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise UsageError(f"{_shown(url)}: not a URL ({error}); {_WANTED}") from error


@cache
def _trust(*, is_encrypted: bool, ca_file: str | None) -> ssl.SSLContext:
    """What is trusted; reading the certificates takes longer than asking a server on loopback."""
    if not is_encrypted:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and is not used
    if ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an SSLError is one
        told = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(
            f"{CA_ENV} {Path(ca_file).name}: {told}; wanted a file of certificates in PEM."
            " Nothing was sent."
        ) from error


def _shown(url: str) -> str:
    """The text without a user or password."""
    return re.sub(r"//[^/]*@", "//", url)


def address(client: httpx.Client) -> str:
    """The server's address for messages, without a user or password."""
    return str(client.base_url.copy_with(username=None, password=None)).rstrip("/")


def ask(client: httpx.Client, path: str) -> Answer:
    """Get a page.

    Raises:
        EngineError: There is no whole answer; a `GoneError` when nobody listens.
        UsageError: The server wants an API key, and the one that was given cannot be used.
    """
    answer = _ask(client, path, {})
    # A user and password in the URL need the same header, and go first.
    if answer.status == 401 and path.startswith("/v1/") and not client.base_url.userinfo:
        key = find_api_key()
        if key is not None:
            return _ask(client, path, {"Authorization": f"Bearer {key}"})
    return answer


def _ask(client: httpx.Client, path: str, headers: Mapping[str, str]) -> Answer:
    where = address(client)
    until_s = time.monotonic() + MAX_ANSWER_S
    body = bytearray()
    try:
        with client.stream("GET", path, headers=headers) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise EngineError(f"{where}{path}: an answer without end, so this is not vLLM")
                if time.monotonic() > until_s:
                    raise EngineError(f"{where}{path}: no whole answer in {MAX_ANSWER_S:g} s")
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise no_answer(error, where=where, path=path) from error
    return Answer(
        status=response.status_code,
        text=body.decode("utf-8", errors="replace"),
        location=response.headers.get("location"),
    )


def no_answer(error: httpx.RequestError, *, where: str, path: str) -> EngineError:
    """What a failed question means; a `GoneError` when the machine says that nobody listens."""
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return EngineError(f"{where}: {_not_trusted(cause)}")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return EngineError(
            f"{where}: no encrypted connection ({error}). Does the server speak plain"
            " http:// there?"
        )
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return GoneError(
            f"{where}: nobody listens there ({error}). Is the server up, and the port right?"
        )
    match error:
        case httpx.ConnectTimeout():
            return EngineError(f"{where}: the machine does not answer. Are name and port right?")
        case httpx.TimeoutException():
            return EngineError(f"{where}{path}: no answer in time")
        case httpx.ConnectError():
            return EngineError(f"{where}: cannot be reached ({error}). Is the name right?")
        case _:
            told = str(error) or type(error).__name__
            return EngineError(f"{where}{path}: no proper HTTP answer ({told})")


def _not_trusted(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate was refused, and what to do."""
    found = error.verify_message
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return (
            f"its certificate is for another name ({found}). Use the name that the certificate is"
            " for. Nothing was sent."
        )
    return (
        f"its certificate is not trusted here ({found}). Name a PEM file with the authority that"
        f" signed it, or with the certificate itself when it is self-signed: {CA_ENV}=FILE."
        " Nothing was sent."
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
