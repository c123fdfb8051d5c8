"""The load generator against a real server on loopback."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtopt.errors import EngineError, UsageError
from rtopt.traffic import Arrivals, ClosedLoop, LoadProcess, Replay, Tally, workload_by_arrivals
from rtopt.traffic.formats import write_workload
from rtopt.traffic.offering import offer
from rtopt.types import Ask, Load, Workload
from tests.unit.traffic.conftest import MODEL, Served


def offered(load: ClosedLoop | Replay, *, stop_after_s: float | None = None) -> Tally:
    async def run() -> Tally:
        stop = asyncio.Event()
        if stop_after_s is not None:
            asyncio.get_running_loop().call_later(stop_after_s, stop.set)
        return await offer(load, stop, api_key="key")

    return asyncio.run(run())


def replay(served: Served, folder: Path, workload: Workload, **more: object) -> Replay:
    path = folder / "workload.jsonl"
    write_workload(workload, path)
    return Replay(url=served.url, model=MODEL, file=str(path), **more)  # type: ignore[arg-type] # of mixed types


def arrivals(**changes: object) -> Workload:
    made = {"rate_per_s": 50.0, "duration_s": 1.0, "output_tokens": (2, 4), "seed": 5, **changes}
    return workload_by_arrivals(Arrivals(**made))  # type: ignore[arg-type] # of mixed types


def test_an_open_loop_sends_every_ask_at_its_time(served: Served, tmp_path: Path) -> None:
    workload = arrivals()
    tally = offered(replay(served, tmp_path, workload))
    assert (tally.finished, tally.failed, tally.unsent) == (len(workload.asks), 0, 0)
    assert tally.output_tokens == sum(ask.output_tokens for ask in workload.asks)
    assert tally.prompt_tokens == sum(ask.prompt_tokens for ask in workload.asks)
    assert 0 <= tally.late_ms["p50"] <= tally.late_ms["p99"]
    planned = workload.asks[-1].arrival_ns - workload.asks[0].arrival_ns
    assert served.at_s[-1] - served.at_s[0] > 0.9 * planned / 1e9, "none before its time"


def test_an_open_loop_does_not_wait_for_answers(served: Served, tmp_path: Path) -> None:
    served.token_s = 0.2
    workload = arrivals(duration_s=0.5, rate_per_s=30.0, output_tokens=(3, 3))
    tally = offered(replay(served, tmp_path, workload))
    in_turn_s = 0.6 * len(workload.asks)
    assert served.at_s[-1] - served.at_s[0] < in_turn_s / 3, "one after the other takes longer"
    # The server sleeps before each of three tokens; only the lower ends do not hang on the machine.
    assert tally.ttft_ms["p50"] > 190
    assert tally.e2e_ms["p50"] > 590
    assert tally.e2e_ms["p50"] > tally.itl_ms["p50"] > 100


def test_goodput_counts_answers_within_every_limit(served: Served, tmp_path: Path) -> None:
    served.token_s = 0.05
    asks = tuple(Ask(arrival_ns=0, prompt_tokens=3, output_tokens=n) for n in (1, 2, 8, 9))
    workload = Workload(load=Load(kind="open"), asks=asks, duration_ns=1)
    limits = {"ttft": 150.0, "e2e": 250.0}
    tally = offered(replay(served, tmp_path, workload, limits_ms=limits))
    assert (tally.finished, tally.good) == (4, 2)
    with pytest.raises(UsageError, match="unknown metric; known: ttft, itl, e2e"):
        offered(replay(served, tmp_path, workload, limits_ms={"tpot": 3.0}))


def test_what_is_sent_is_streamed_salted_keyed_and_the_same_for_a_seed(
    served: Served, tmp_path: Path
) -> None:
    workload = arrivals(duration_s=0.2, prefixes=1, prefix_tokens=50)
    for salt in ("one", "two"):
        offered(replay(served, tmp_path, workload, salt=salt, seed=9))
    first, second = served.asked[: len(workload.asks)], served.asked[len(workload.asks) :]
    assert sorted(b["prompt"] for b in first) == sorted(b["prompt"] for b in second)
    assert {b["cache_salt"] for b in first} == {"one"}
    assert {b["cache_salt"] for b in second} == {"two"}
    assert len({tuple(b["prompt"][:50]) for b in first}) == 1, "the shared beginning"
    assert len({tuple(b["prompt"][50:]) for b in first}) == len(first), "the rest is fresh"
    assert set(served.keys) == {"Bearer key"}
    assert all(b["ignore_eos"] and b["stream"] for b in first)


def test_clients_wait_for_their_answers_and_never_exceed_their_number(served: Served) -> None:
    served.token_s = 0.01
    load = ClosedLoop(
        url=served.url, model=MODEL, clients=3, duration_s=0.6, output_tokens=(5, 5), stream=True
    )
    tally = offered(load)
    # At most 3 clients, each with answers of at least 50 ms.
    assert 3 < tally.finished <= 3 * (tally.wall_s / 0.05)
    assert tally.late_ms == {}, "no schedule, no lateness"
    assert tally.ttft_ms


def test_clients_that_think_ask_less_often(served: Served) -> None:
    def rate(think_s: float) -> float:
        load = ClosedLoop(
            url=served.url, model=MODEL, clients=4, duration_s=0.5, think_s=think_s, seed=2
        )
        tally = offered(load)
        return tally.finished / tally.wall_s

    assert rate(0.2) < rate(0.0) / 3


def test_a_recorded_closed_loop_is_asked_once_through(served: Served, tmp_path: Path) -> None:
    asks = tuple(Ask(arrival_ns=n, prompt_tokens=n + 1, output_tokens=2) for n in range(10))
    workload = Workload(load=Load(kind="closed", clients=3), asks=asks, duration_ns=20)
    tally = offered(replay(served, tmp_path, workload))
    assert (tally.finished, tally.unsent) == (10, 0)
    assert sorted(len(body["prompt"]) for body in served.asked) == list(range(1, 11))


def test_a_stop_lets_answers_finish_and_counts_what_was_never_sent(
    served: Served, tmp_path: Path
) -> None:
    served.token_s = 0.1
    workload = arrivals(rate_per_s=20.0, duration_s=30.0, output_tokens=(3, 3))
    tally = offered(replay(served, tmp_path, workload), stop_after_s=1.0)
    assert tally.finished == len(served.asked) > 0
    assert tally.finished + tally.unsent == len(workload.asks)
    assert tally.unfinished == 0


@pytest.mark.parametrize(
    ("trouble", "named"),
    [
        ({"status": 400}, "http_400"),
        ({"cuts_off": True}, "WireError"),
    ],
)
def test_failures_are_counted_by_their_kind(
    served: Served, tmp_path: Path, trouble: dict[str, object], named: str
) -> None:
    for name, value in trouble.items():
        setattr(served, name, value)
    workload = arrivals(duration_s=0.2)
    tally = offered(replay(served, tmp_path, workload))
    assert (tally.finished, tally.failed) == (0, len(workload.asks))
    assert tally.errors == {named: len(workload.asks)}
    assert tally.ttft_ms == {}


def test_answers_without_the_servers_count_are_said(served: Served, tmp_path: Path) -> None:
    served.has_usage = False
    workload = arrivals(duration_s=0.2)
    tally = offered(replay(served, tmp_path, workload))
    assert tally.uncounted == tally.finished == len(workload.asks)
    assert tally.output_tokens == 0


def test_nobody_at_the_address_is_counted_as_failed(tmp_path: Path, served: Served) -> None:
    load = replay(served, tmp_path, arrivals(duration_s=0.1))
    gone = Replay(url="http://127.0.0.1:9", model=MODEL, file=load.file)
    tally = offered(gone)
    assert tally.errors == {"ConnectionRefusedError": tally.failed}


def test_each_request_has_a_line_where_it_was_asked_for(served: Served, tmp_path: Path) -> None:
    workload = arrivals(duration_s=0.3)
    out = tmp_path / "answers.jsonl"
    offered(replay(served, tmp_path, workload, answers=str(out)))
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(line["number"] for line in lines) == list(range(len(workload.asks)))
    for line in lines:
        ask = workload.asks[line["number"]]
        assert line["output_tokens"] == ask.output_tokens
        assert len(line["gaps_ms"]) == ask.output_tokens - 1
        assert line["sent_ns"] / 1e6 == pytest.approx(
            ask.arrival_ns / 1e6 + line["late_ms"], abs=0.01
        )


def test_the_process_gives_the_tally_and_an_early_stop_ends_it(served: Served) -> None:
    with LoadProcess(ClosedLoop(url=served.url, model=MODEL, clients=2)) as process:
        deadline = time.monotonic() + 10
        while not served.asked and time.monotonic() < deadline:
            time.sleep(0.02)
        tally = process.stop()
    assert tally.finished == len(served.asked) > 0
    assert tally.failed == 0
    assert not process.is_running


def test_the_process_says_why_it_refused(served: Served, tmp_path: Path) -> None:
    process = LoadProcess(Replay(url=served.url, model=MODEL, file=str(tmp_path / "none"))).start()
    deadline = time.monotonic() + 10
    while process.is_running and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(EngineError, match=r"refused: .*none: cannot be read"):
        process.stop()


def test_the_generator_loads_nothing_heavy() -> None:
    code = "import sys, rtopt.traffic.offering; print(*{m.partition('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"httpx", "pydantic", "numpy", "typer", "rich", "vllm"} & set(done.stdout.split())


def test_the_process_is_handed_the_key(served: Served) -> None:
    load = ClosedLoop(url=served.url, model=MODEL, clients=1, duration_s=0.3)
    process = LoadProcess(load, api_key="key").start()
    while process.is_running:
        time.sleep(0.05)
    assert process.stop().finished > 0
    assert set(served.keys) == {"Bearer key"}
