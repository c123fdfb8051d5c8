"""Answers are taken apart alike, however the network cut them."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.traffic.exchange import Exchange, WireError

EVENT_TEXT = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=30)


def asked() -> Exchange:
    return Exchange(h11.Request(method="GET", target="/", headers=[("Host", "t")]), b"")


def chunked(events: list[str], sizes: list[int]) -> bytes:
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    made = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    while body:
        size = sizes.pop() if sizes else len(body)
        part, body = body[:size], body[size:]
        made += b"%x\r\n%s\r\n" % (len(part), part)
    return made + b"0\r\n\r\n"


@given(
    st.lists(EVENT_TEXT, max_size=8),
    st.lists(st.integers(1, 40), max_size=20),
    st.lists(st.integers(1, 40), max_size=20),
)
def test_events_do_not_depend_on_chunks_or_on_how_the_network_cut_them(
    events: list[str], chunk_sizes: list[int], piece_sizes: list[int]
) -> None:
    data = chunked(events, chunk_sizes)
    reader, found = asked(), []
    while data:
        size = piece_sizes.pop() if piece_sizes else len(data)
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == [event.encode() for event in events]
    assert reader.is_done
    assert reader.keeps_open


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_an_error_of_the_wire(data: bytes) -> None:
    reader = asked()
    try:
        reader.feed(data)
        reader.finish()
    except WireError:
        return
    assert reader.status is not None


@given(st.binary(max_size=100))
def test_any_chunks_are_an_answer_or_an_error_of_the_wire(data: bytes) -> None:
    reader = asked()
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    try:
        reader.feed(head + data)
        reader.finish()
    except WireError:
        return
    assert reader.is_done


def test_the_body_of_an_error_is_kept() -> None:
    reader = asked()
    reader.feed(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nwrong")
    assert (reader.status, bytes(reader.body), reader.is_done) == (400, b"wrong", True)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    reader = asked()
    reader.feed(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf")
    before = reader.is_done
    reader.finish()
    assert (before, reader.is_done, reader.keeps_open) == (False, True, False)


def test_an_answer_that_is_cut_off_is_an_error() -> None:
    reader = asked()
    reader.feed(chunked(["a", "b"], [])[:-5])
    with pytest.raises(WireError, match="hung up"):
        reader.finish()
