"""A tally as a table of two columns."""

from rtopt.traffic.portrait import spread_text
from rtopt.traffic.tally import LATE_MS, Tally


def tally_rows(tally: Tally) -> list[tuple[str, str]]:
    """What came of a load, for a person; what was not measured is not in it."""
    wall_s = tally.wall_s or 1.0
    rows = [
        ("finished", f"{tally.finished} requests, {tally.finished / wall_s:.2f} per s"),
        ("failed", _failed(tally)),
    ]
    if tally.unfinished or tally.unsent:
        rows.append(("not finished", f"{tally.unfinished} given up, {tally.unsent} never sent"))
    rows += [
        ("prompt tokens", f"{tally.prompt_tokens}, {tally.prompt_tokens / wall_s:.1f} per s"),
        ("output tokens", f"{tally.output_tokens}, {tally.output_tokens / wall_s:.1f} per s"),
    ]
    if tally.uncounted:
        rows.append(("uncounted", f"{tally.uncounted} answers without the server's count"))
    for name, found in (("TTFT", tally.ttft_ms), ("ITL", tally.itl_ms), ("E2E", tally.e2e_ms)):
        if found:
            rows.append((f"{name} ms", spread_text(found, 1)))
    if tally.good is not None:
        sent = tally.finished + tally.failed + tally.unfinished
        share = f", {tally.good / sent:.1%} of those sent" if sent else ""
        rows.append(("goodput", f"{tally.good / wall_s:.2f} per s{share}"))
    if tally.late_ms:
        rows += [
            ("sent late ms", spread_text(tally.late_ms, 2)),
            (f"later than {LATE_MS:.0f} ms", f"{tally.late} requests"),
        ]
    rows.append(("load generator", f"{tally.cpu_frac:.1%} of one core"))
    return rows


def _failed(tally: Tally) -> str:
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(tally.errors.items()))
    return f"{tally.failed} requests" + (f" ({kinds})" if kinds else "")
