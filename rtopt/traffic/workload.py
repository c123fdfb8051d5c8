"""The requests that a trace shows, as a workload that can be replayed."""

from statistics import median

from rtopt.errors import EvidenceError
from rtopt.types import Ask, Load, Request, Trace, Workload


def workload_of(trace: Trace) -> Workload:
    """Take the finished requests of a trace as offered load, in order of arrival.

    Without a stated load the arrivals count as open. Requests that had not finished by the end of
    the window are asked for again with the output they had been allowed.

    Raises:
        EvidenceError: No request finished in the window.
    """
    if not trace.requests:
        raise EvidenceError(
            f"no request finished in the {trace.duration_s:.0f} s of this trace, so there is no"
            " workload to replay: record while there is traffic"
        )
    load = trace.header.load or Load(kind="open")
    done = sorted(trace.requests, key=lambda r: r.arrival_ns)
    asks = [_ask(r, trace.start_ns) for r in done if r.finish != "abort"]
    if load.kind == "open":
        asks += [
            Ask(
                arrival_ns=max(0, f.arrival_ns - trace.start_ns),
                prompt_tokens=f.prompt_tokens,
                output_tokens=f.max_tokens or max(1, f.output_tokens),
            )
            for f in trace.in_flight
            if f.edge == "end" and f.arrival_ns is not None
        ]
        asks.sort(key=lambda a: a.arrival_ns)
    return Workload(
        load=load,
        asks=tuple(asks),
        duration_ns=trace.end_ns - trace.start_ns,
        think_ns=_think_ns(done, load) if load.kind == "closed" else 0,
        source="trace",
    )


def _ask(request: Request, start_ns: int) -> Ask:
    return Ask(
        arrival_ns=max(0, request.arrival_ns - start_ns),
        prompt_tokens=request.prompt_tokens,
        output_tokens=max(1, request.output_tokens),
        cached_tokens=request.cached_tokens or 0,
    )


def _think_ns(done: list[Request], load: Load) -> int:
    """Median time from an answer to the next arrival that it could have caused.

    In a closed loop each answer frees one client, whose next request arrives a little later. Ends
    and arrivals are paired in order; in steady state the n-th end causes the n-th new arrival.
    """
    ends = sorted(r.finished_ns for r in done)
    arrivals = sorted(r.arrival_ns for r in done if r.arrival_ns > ends[0])
    gaps = [a - e for e, a in zip(ends, arrivals, strict=False) if a >= e]
    return int(median(gaps)) if load.clients and gaps else 0
