"""Clocks with a known offset, drift and jitter: the true time lies within the bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.errors import EvidenceError
from rtopt.profile.clocks import Reading, align_events, line_of, read_together
from rtopt.types import Clock, DeviceEvent, End, EngineInfo, Header, HostEvent, Machine, Trace

S = 1_000_000_000
OFFSETS = st.integers(-(10**18), 10**18)
DRIFTS_PPM = st.integers(-500, 500)


def slow(ns: int, ppm: int) -> int:
    """What a clock shows after so long that runs off by so many parts in a million."""
    return ns + ns * ppm // 1_000_000


@given(
    offset_ns=OFFSETS,
    drift_ppm=DRIFTS_PPM,
    width_ns=st.integers(0, 10_000_000),
    jitters=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    length_ns=st.integers(0, 600 * S),
    at=st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5),
)
def test_the_true_time_lies_within_the_bound(
    offset_ns: int,
    drift_ppm: int,
    width_ns: int,
    jitters: tuple[float, float],
    length_ns: int,
    at: list[float],
) -> None:
    def true(ns: int) -> int:
        return offset_ns + slow(ns, drift_ppm)

    readings = [
        Reading(from_ns=ns, to_ns=true(ns) + int(jitter * width_ns), error_ns=width_ns)
        for ns, jitter in zip((0, length_ns), jitters, strict=True)
    ]
    if readings[1].to_ns + width_ns < readings[0].to_ns - width_ns:
        return
    line = line_of(readings)
    moments = [int(share * max(length_ns, S)) for share in at]
    bound_ns = line.error_ns(min(moments), max(moments))
    for ns in moments:
        assert abs(line.to(ns) - true(ns)) <= bound_ns


@given(offset_ns=OFFSETS, drift_ppm=DRIFTS_PPM, turn=st.floats(0, 1), at=st.floats(0, 1))
def test_a_drift_that_begins_only_halfway_lies_within_the_bound(
    offset_ns: int, drift_ppm: int, turn: float, at: float
) -> None:
    turn_ns = int(turn * 60 * S)

    def true(ns: int) -> int:
        return offset_ns + min(ns, turn_ns) + slow(max(0, ns - turn_ns), drift_ppm)

    line = line_of([Reading(from_ns=ns, to_ns=true(ns), error_ns=0) for ns in (0, 60 * S)])
    ns = int(at * 60 * S)
    assert abs(line.to(ns) - true(ns)) <= line.error_ns(0, 60 * S)


def test_a_tight_pair_gives_a_tight_bound() -> None:
    pair = [Reading(from_ns=ns, to_ns=ns + 5, error_ns=300) for ns in (0, S)]
    assert line_of(pair).error_ns(0, S) == 304


def test_one_pair_serves_with_what_a_clock_may_drift() -> None:
    line = line_of([Reading(from_ns=0, to_ns=7, error_ns=300)])
    assert line.to(10 * S) == 10 * S + 7
    assert line.error_ns(0, 10 * S) == 300 + 5_000_000 + 4


def test_two_clocks_are_read_together_within_what_it_says() -> None:
    reading = read_together(lambda: 42)
    assert reading.from_ns == 42
    assert 0 <= reading.error_ns < S


def test_no_pair_is_refused() -> None:
    with pytest.raises(EvidenceError, match="never read together"):
        line_of([])


def test_a_clock_that_was_set_back_is_refused() -> None:
    with pytest.raises(EvidenceError, match="ran back by 2 s"):
        line_of([Reading(from_ns=0, to_ns=3 * S), Reading(from_ns=S, to_ns=S)])


def trace(*, device: tuple[DeviceEvent, ...] = (), host: tuple[HostEvent, ...] = ()) -> Trace:
    return Trace(
        header=Header(
            source="overlay",
            engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
            machine=Machine(cpu="x86"),
            clock=Clock(mono_ns=100 * S, unix_ns=1000 * S),
            start_ns=100 * S,
            knobs={},
        ),
        end=End(end_ns=110 * S, clock=Clock(mono_ns=110 * S, unix_ns=1010 * S)),
        device=device,
        host=host,
    )


def test_events_move_to_the_engines_clock_and_the_header_says_how_well() -> None:
    seen = trace(
        device=(DeviceEvent(t_ns=3 * S, dur_ns=5, name="k"),),
        host=(HostEvent(t_ns=4 * S, dur_ns=9, name="aten::mm"),),
    )
    source = [
        Reading(from_ns=2 * S, to_ns=1002 * S, error_ns=500),
        Reading(from_ns=6 * S, to_ns=1006 * S, error_ns=700),
    ]
    moved = align_events(seen, source)
    assert moved.device[0].t_ns == 103 * S
    assert (moved.host[0].t_ns, moved.host[0].dur_ns) == (104 * S, 9)
    assert moved.header.clock_error_ns is not None
    assert 700 < moved.header.clock_error_ns < 200_000


def test_a_trace_without_events_has_nothing_to_align() -> None:
    assert align_events(trace(), []) == trace()
