"""Encrypted servers, API keys and path prefixes: what is trusted, and what is sent where."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from rtopt.engines.client import ask, open_client
from rtopt.engines.secret import find_api_key
from rtopt.errors import EngineError, UsageError

KEY = "canary-api-key-31"


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that wants the key for /v1; its address, and the path and key of each question."""
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            key = self.headers.get("authorization")
            asked.append((self.path, key))
            is_refused = "/v1/" in self.path and key != f"Bearer {KEY}"
            self.send_response(401 if is_refused else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "RTOPT_API_KEY", "RTOPT_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


def certificate_for(name: str, folder: Path) -> tuple[Path, Path]:
    """A certificate with its key, and the private authority that signed it."""
    authority = trustme.CA()
    made, trusted = folder / "made.pem", folder / "authority.pem"
    authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(made))
    authority.cert_pem.write_to_path(str(trusted))
    return made, trusted


def status(url: str, path: str) -> int:
    with open_client(url) as client:
        return ask(client, path).status


def test_a_certificate_of_an_unknown_authority_is_refused_with_what_to_do(tmp_path: Path) -> None:
    made, _ = certificate_for("127.0.0.1", tmp_path)
    with (
        serving(made) as (url, asked),
        pytest.raises(EngineError, match=r"not trusted here .*SSL_CERT_FILE=FILE"),
    ):
        status(url, "/metrics")
    assert asked == []


def test_a_private_authority_is_trusted_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, authority = certificate_for("127.0.0.1", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with serving(made) as (url, _):
        assert status(url, "/metrics") == 200


def test_a_certificate_for_another_name_is_refused_although_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, authority = certificate_for("elsewhere.example", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with serving(made) as (url, _), pytest.raises(EngineError, match="for another name"):
        status(url, "/metrics")


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_of_authorities_that_is_none_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(UsageError, match=r"SSL_CERT_FILE ca\.pem: ") as refused:
        open_client("https://127.0.0.1:1")
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "/behind/a/proxy"])
def test_the_key_goes_to_v1_alone_and_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv("RTOPT_API_KEY", KEY)
    with serving() as (url, asked):
        assert status(url + prefix, "/metrics") == 200
        assert status(url + prefix, "/v1/models") == 200
    assert asked == [
        (f"{prefix}/metrics", None),
        (f"{prefix}/v1/models", None),
        (f"{prefix}/v1/models", f"Bearer {KEY}"),
    ]


def test_without_a_key_the_refusal_is_the_answer() -> None:
    with serving() as (url, asked):
        assert status(url, "/v1/models") == 401
    assert len(asked) == 1


def test_a_key_in_a_file_goes_before_one_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    monkeypatch.setenv("RTOPT_API_KEY", "other")
    monkeypatch.setenv("RTOPT_API_KEY_FILE", str(file))
    assert find_api_key() == KEY


def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RTOPT_API_KEY", f"{KEY}\n{KEY}")
    with pytest.raises(UsageError, match="RTOPT_API_KEY") as refused:
        find_api_key()
    assert KEY not in str(refused.value)
