"""The load generator on a real engine: every request, and with the server's own count of tokens."""

import time
from pathlib import Path

import httpx

from rtopt.engines.vllm_process import VllmProcess
from rtopt.traffic import Arrivals, LoadProcess, Replay, find_target, workload_by_arrivals
from rtopt.traffic.formats import write_workload

COUNTERS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")


def counted(url: str) -> list[int]:
    """Prompt and output tokens since the start, by the server's metrics."""
    page = httpx.get(f"{url}/metrics", timeout=60, trust_env=False).text
    found = {
        line.partition("{")[0]: float(line.rsplit(" ", 1)[1])
        for line in page.splitlines()
        if line.startswith(COUNTERS)
    }
    return [int(found[name]) for name in COUNTERS]


def test_an_open_loop_offers_every_request_and_counts_the_servers_tokens(
    server: VllmProcess, tmp_path: Path
) -> None:
    workload = workload_by_arrivals(Arrivals(rate_per_s=1.5, duration_s=15, seed=4))
    file = tmp_path / "workload.jsonl"
    write_workload(workload, file)
    model = find_target(server.url).model
    before = counted(server.url)
    process = LoadProcess(
        Replay(url=server.url, model=model, file=str(file), seed=4, salt="schedule")
    ).start()
    while process.is_running:
        time.sleep(0.2)
    tally = process.stop()
    after = counted(server.url)
    assert (tally.finished, tally.failed) == (len(workload.asks), 0)
    assert [b - a for a, b in zip(before, after, strict=True)] == [
        tally.prompt_tokens,
        tally.output_tokens,
    ]
    assert tally.output_tokens == sum(ask.output_tokens for ask in workload.asks)
    assert 0 <= tally.late_ms["p50"] <= tally.late_ms["p99"], "how late is for the benchmark"
