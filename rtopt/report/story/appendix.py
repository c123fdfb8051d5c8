"""For those who check: configuration, machine, settings, what was lost, and the whole chain."""

from collections.abc import Mapping
from typing import Any

from rtopt.report.number import moment, number, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Section, Table
from rtopt.report.story.words import setting
from rtopt.types import Machine, Trace, Trial

PRIVATE = ("token", "secret", "password", "api_key", "url", "host", "user", "path", "dir")
"""A setting with one of these in its name is not shown."""


def appendix_sections(run: Run) -> tuple[Section, ...]:
    """Everything, each part to be folded."""
    traces = [("baseline", run.baseline), *((f"after {n}", t) for n, t in run.afters.items())]
    known = [(name, trace) for name, trace in traces if trace is not None]
    found = [_provenance(run), *(_gate(n, trial) for n, trial in run.trials.items())]
    if run.baseline is not None:
        header = run.baseline.header
        found += [
            _machine(header.machine),
            _engine(run.baseline),
            _pairs("config", "Effective configuration of the engine", header.engine.config),
        ]
    found += [_recordings(known), _cost(run), _pairs("settings", "Settings", run.settings)]
    return tuple(found)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as dotted names, without whatever may name a person, host or place."""
    found: dict[str, str] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        elif value is None:
            found[key] = "not set"
        else:
            found[key] = "(not shown)" if _is_private(name, value) else str(value)
    return found


def _is_private(name: str, value: object) -> bool:
    # "tokens" as in max_num_batched_tokens is a number and no secret.
    if isinstance(value, bool | int | float):
        return False
    parts = name.lower().split("_")
    named = any(word in parts or (("_" in word) and word in name.lower()) for word in PRIVATE)
    text = str(value)
    return named or "://" in text or text.startswith(("/", "~", "./", "../")) or "@" in text


def _pairs(id_: str, title: str, values: Mapping[str, Any]) -> Section:
    shown = flat(values)
    if not shown:
        return Section(id=id_, title=title, lead=("Not recorded.",))
    table = Table(head=("Setting", "Value"), rows=tuple(sorted(shown.items())), is_prose=True)
    return Section(id=id_, title=title, tables=(table,))


def _provenance(run: Run) -> Section:
    if run.provenance is None:
        why = run.broken or "the run has no provenance.jsonl"
        return Section(id="provenance", title="Provenance", lead=(f"Not verified: {why}.",))
    links = run.provenance.entries
    lead = [
        f"All {len(links)} links verify: each holds the SHA-256 of its content and of the link "
        "before it, and what this page says about causes, choices and trials is what they hold."
    ]
    files = {str(link.body["file"]): "sha256" in link.body for link in links if "file" in link.body}
    sealed = [name for name, has_digest in files.items() if has_digest]
    loose = [name for name, has_digest in files.items() if not has_digest]
    if sealed:
        lead.append(f"Recordings whose SHA-256 matches: {', '.join(sealed)}.")
    if loose:
        lead.append(f"Recordings named without a digest, so not checked: {', '.join(loose)}.")
    if run.ended is None:
        lead.append("The last link is not an end: the run was not closed, or links are missing.")
    rows = tuple(
        (str(link.seq), link.kind, link.title, moment(link.unix_ns), link.digest) for link in links
    )
    table = Table(head=("#", "Kind", "Title", "When", "SHA-256"), rows=rows, is_prose=True)
    return Section(id="provenance", title="Provenance", lead=tuple(lead), tables=(table,))


def _gate(round_: int, trial: Trial) -> Section:
    plan = trial.plan
    rows = [
        ("Objective", plan.objective),
        ("New values", setting(plan.change.knobs)),
        ("Values before", setting(trial.undo.knobs)),
        ("alpha, bound on keeping what is worse", percent(plan.alpha)),
        ("Prior variance of the effect (g)", number(plan.prior)),
        ("Pairs, at least and at most", f"{plan.min_pairs} and {plan.max_pairs}"),
        ("Block and washout", f"{number(plan.block_s)} s and {number(plan.washout_s)} s"),
        ("Seed of the coin", str(plan.seed)),
        ("Smallest gain wanted", percent(plan.min_gain_frac)),
        (
            "Noise between two equal blocks (sd)",
            "not measured" if plan.noise_sd is None else percent(plan.noise_sd),
        ),
    ]
    rows += [
        (f"Simulated: kept at a true effect of {effect}", percent(share))
        for effect, share in plan.false_keep.items()
    ]
    if not plan.false_keep:
        rows.append(("Simulated share of false keeps", "not simulated"))
    started, ended = trial.started_unix_ns, trial.ended_unix_ns
    rows.append(("Started", moment(started) if started else "not recorded"))
    rows.append(("Ended", moment(ended) if ended else "not recorded"))
    table = Table(head=("Setting", "Value"), rows=tuple(rows), is_prose=True)
    return Section(id=f"gate-{round_}", title=f"Gate of trial {round_}", tables=(table,))


def _machine(machine: Machine) -> Section:
    rows = [("Processor", machine.cpu), ("Processors used", str(machine.num_cpus))]
    if machine.memory_bytes is not None:
        rows.append(("Memory", f"{number(machine.memory_bytes / 2**30)} GiB"))
    for device in machine.accelerators:
        memory = "" if device.memory_bytes is None else f", {device.memory_bytes / 2**30:.0f} GiB"
        driver = "" if device.driver is None else f", driver {device.driver}"
        rows.append(("Accelerator", f"{device.name}{memory}{driver}"))
    if not machine.accelerators:
        rows.append(("Accelerator", "none"))
    rows += [("Kernel", machine.kernel or "not read"), ("Python", machine.python or "not read")]
    table = Table(head=("", ""), rows=tuple(rows), is_prose=True)
    return Section(id="machine", title="Machine", tables=(table,))


def _engine(trace: Trace) -> Section:
    engine, clock = trace.header.engine, trace.header.clock
    end = trace.end.clock
    drift_ms = ((end.unix_ns - clock.unix_ns) - (end.mono_ns - clock.mono_ns)) / 1e6
    rows = [
        ("Engine", f"{engine.name} {engine.version}"),
        ("Model", engine.model),
        ("Engines and API servers", f"{engine.num_engines} and {engine.num_api_servers}"),
        ("Live knobs at the start", setting(trace.header.knobs)),
        ("Recorded by", trace.header.source),
        ("Recording began", moment(clock.unix_ns)),
        ("Wall clock against monotonic clock over it", quantity(drift_ms, "ms")),
    ]
    rows += [(f"Derived: {name}", how) for name, how in trace.header.derived.items()]
    table = Table(head=("", ""), rows=tuple(rows), is_prose=True)
    return Section(id="engine", title="Engine, versions and clocks", tables=(table,))


def _recordings(traces: list[tuple[str, Trace]]) -> Section:
    title = "Recordings: what was dropped, failed or noted"
    if not traces:
        return Section(id="recordings", title=title, lead=("There is no recording.",))
    rows = tuple(
        (
            name,
            number(len(trace.steps)),
            number(len(trace.requests)),
            _counts(trace.end.dropped),
            _counts(trace.end.failed_reads),
            trace.end.reason,
            "; ".join(trace.notes) or "none",
        )
        for name, trace in traces
    )
    head = ("Recording", "Steps", "Requests", "Dropped", "Failed readings", "Ended by", "Notes")
    return Section(id="recordings", title=title, tables=(Table(head=head, rows=rows),))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in counts.items() if amount) or "none"


def _cost(run: Run) -> Section:
    """What recording cost, from the link that carries `overlay_cost`."""
    title = "What rtopt itself cost the engine"
    links = () if run.provenance is None else run.provenance.entries
    found = [link.body["overlay_cost"] for link in links if "overlay_cost" in link.body]
    if not found or not found[-1].get("steps"):
        return Section(id="cost", title=title, lead=("Not recorded in this run.",))
    each_us = found[-1]["record_ns"] / found[-1]["steps"] / 1e3
    text = f"Recording took {number(each_us)} microseconds per step inside the engine's processes"
    step_s = None if run.baseline is None else _step_s(run.baseline)
    if step_s is not None:
        text += f", {percent(each_us / 1e6 / step_s)} of a mean step of {number(step_s * 1e3)} ms"
    return Section(id="cost", title=title, lead=(f"{text}.",))


def _step_s(trace: Trace) -> float | None:
    known = [step.dur_ns / 1e9 for step in trace.steps if step.dur_ns is not None]
    return sum(known) / len(known) if known else None
