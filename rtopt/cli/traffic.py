"""rtopt traffic."""

import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rtopt.cli.options import AsJson, Url
from rtopt.cli.show import as_json, note, progress, say, table
from rtopt.engines.secret import find_api_key
from rtopt.errors import EngineError, StoppedError, UsageError
from rtopt.traffic import (
    WRITERS,
    Arrivals,
    ClosedLoop,
    Fit,
    Replay,
    describe,
    find_target,
    fit,
    parse_limits,
    parse_on_off,
    parse_span,
    portrait_rows,
    read_workload,
    run_clients,
    run_workload,
    tally_rows,
    workload_by_arrivals,
)
from rtopt.types import Workload

GROUP = typer.Typer(add_completion=False, no_args_is_help=True)

_DEFAULT_S = 60.0
"""A made-up load lasts so long."""
_MADE = ("rate", "clients")
_ONLY = {
    **dict.fromkeys(("scale_lengths", "max_prompt", "max_output", "speed", "start"), ("file",)),
    **dict.fromkeys(("prompt_tokens", "output_tokens", "prefixes", "prefix_tokens"), _MADE),
    **dict.fromkeys(("cv", "on_off"), ("rate",)),
    "think": ("clients",),
}
"""Options that only some sources of load have."""

WorkloadFile = Annotated[
    Path,
    typer.Argument(
        help="Azure or BurstGPT CSV, Mooncake or timed_trace JSONL, GuideLLM JSON, or ours."
    ),
]
ScaleLengths = Annotated[float, typer.Option(help="Multiply prompt and output lengths.")]
MaxPrompt = Annotated[int | None, typer.Option(help="Cut longer prompts; how many is said.")]
MaxOutput = Annotated[int | None, typer.Option(help="Cut longer outputs; how many is said.")]
Speed = Annotated[float, typer.Option(help="Replay a file so many times as fast.")]
Start = Annotated[float, typer.Option(help="Begin so many seconds into the file.")]
Duration = Annotated[float | None, typer.Option(help="So many seconds; of a file, its own.")]


@GROUP.callback()
def run() -> None:
    """Look at, convert and offer workloads."""


@GROUP.command()
def show(file: WorkloadFile, json: AsJson = False) -> None:
    """Show a workload: counts, rates, lengths, bursts, reuse of prefixes."""
    found = describe(read_workload(file))
    if json:
        as_json(asdict(found))
        return
    table(portrait_rows(found), "", "")
    for text in found.notes:
        note(text)


@GROUP.command()
def convert(
    file: WorkloadFile,
    out: Annotated[Path, typer.Argument(help="Where to write.")],
    to: Annotated[
        Literal["rtopt", "timed_trace"],
        typer.Option(help="Our own format, or the one of vLLM's benchmark."),
    ] = "rtopt",
    scale_lengths: ScaleLengths = 1.0,
    max_prompt: MaxPrompt = None,
    max_output: MaxOutput = None,
    speed: Speed = 1.0,
    start: Start = 0.0,
    duration: Duration = None,
) -> None:
    """Write a workload in another format, scaled, cut, or a part of it."""
    how = Fit(
        start_s=start,
        duration_s=duration,
        speed=speed,
        scale_lengths=scale_lengths,
        max_prompt=max_prompt,
        max_output=max_output,
    )
    workload = _fitted(file, how)
    say(WRITERS[to](workload, out))


@GROUP.command("run")
def offer(
    ctx: typer.Context,
    url: Url,
    file: Annotated[Path | None, typer.Argument(help="A workload file.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Without a file: so many arrivals a second.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Without a file: so many clients that each wait.")
    ] = None,
    cv: Annotated[
        float, typer.Option(help="Variation of the gaps: 1 Poisson, above it bursts.")
    ] = 1.0,
    on_off: Annotated[
        str | None, typer.Option(help="ON:OFF, seconds with arrivals and without.")
    ] = None,
    think: Annotated[float, typer.Option(help="A client's mean pause, in seconds.")] = 0.0,
    prompt_tokens: Annotated[str, typer.Option(help="A length, or SHORTEST:LONGEST.")] = "24:40",
    output_tokens: Annotated[str, typer.Option(help="A length, or SHORTEST:LONGEST.")] = "8:16",
    prefixes: Annotated[int, typer.Option(help="So many shared beginnings of prompts.")] = 0,
    prefix_tokens: Annotated[int, typer.Option(help="Length of each shared beginning.")] = 0,
    scale_lengths: ScaleLengths = 1.0,
    max_prompt: MaxPrompt = None,
    max_output: MaxOutput = None,
    speed: Speed = 1.0,
    start: Start = 0.0,
    duration: Duration = None,
    goodput: Annotated[
        list[str] | None,
        typer.Option(help="What a good answer keeps, for example ttft=500ms. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals, lengths and tokens.")] = 0,
    answers: Annotated[Path | None, typer.Option(help="Write one JSON line a request.")] = None,
    json: AsJson = False,
) -> None:
    """Offer a workload file, made-up arrivals, or clients to a server.

    The prefix cache serves nothing from earlier runs. A server's API key is
    read from RTOPT_API_KEY_FILE or RTOPT_API_KEY.
    """
    _check_source(ctx, file=file, rate=rate, clients=clients)
    on_s, off_s = parse_on_off(on_off)
    made_s = _DEFAULT_S if duration is None else duration
    drawn: dict[str, Any] = {
        "prompt_tokens": parse_span("prompt-tokens", prompt_tokens),
        "output_tokens": parse_span("output-tokens", output_tokens),
        "prefixes": prefixes,
        "prefix_tokens": prefix_tokens,
        "seed": seed,
    }
    limits = parse_limits(goodput or [])
    workload: Workload | None = None
    if file is not None:
        workload = _fitted(
            file,
            Fit(
                start_s=start,
                duration_s=duration,
                speed=speed,
                scale_lengths=scale_lengths,
                max_prompt=max_prompt,
                max_output=max_output,
            ),
        )
    elif rate is not None:
        workload = workload_by_arrivals(
            Arrivals(rate_per_s=rate, duration_s=made_s, cv=cv, on_s=on_s, off_s=off_s, **drawn)
        )
    target = find_target(url, api_key=find_api_key())
    common: dict[str, Any] = {
        "url": url,
        "model": target.model,
        "salt": secrets.token_hex(8),
        "limits_ms": limits,
        "answers": str(answers) if answers else None,
    }
    with progress() as said:
        if workload is not None:
            tally, is_interrupted = run_workload(
                workload, Replay(seed=seed, **common), target, progress=said
            )
        else:
            loop = ClosedLoop(
                clients=clients or 0,
                duration_s=made_s,
                think_s=think,
                stream=True,
                **drawn,
                **common,
            )
            tally, is_interrupted = run_clients(loop, target, progress=said)
    if json:
        as_json(asdict(tally))
    else:
        table(tally_rows(tally), "", "")
    if is_interrupted:
        raise StoppedError(f"interrupted; {tally.finished} requests had finished")
    if not tally.finished:
        raise EngineError(f"{url}: no request finished, {tally.failed} failed")


def _fitted(file: Path, how: Fit) -> Workload:
    workload = fit(read_workload(file), how)
    for text in workload.notes:
        note(f"{file}: {text}")
    return workload


def _check_source(ctx: typer.Context, **sources: object) -> None:
    """Refuse anything but one source of load, and options that it does not have."""
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        raise UsageError(
            "wanted one of: a workload file, --rate, --clients"
            f" (found {' and '.join(given) or 'none'}). Nothing was sent."
        )
    for name, fit_for in _ONLY.items():
        source = ctx.get_parameter_source(name)
        if given[0] not in fit_for and source is not None and source.name == "COMMANDLINE":
            raise UsageError(
                f"--{name.replace('_', '-')} goes with {' or '.join(fit_for)}, not with {given[0]}."
                " Nothing was sent."
            )
