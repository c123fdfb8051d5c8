"""What stays, how to make it permanent, and how to take it back."""

from rtopt.report.run import Run
from rtopt.report.section import Code, Section
from rtopt.report.story.words import doing, sentence, setting
from rtopt.types import Trial, Value


def flag(knob: str, value: Value) -> tuple[str, ...]:
    """Start option of vLLM for a knob's value, as words of a command line.

    Source:
        vLLM 0.32, vllm/engine/arg_utils.py: every option is its field with dashes; a switch that
        is off is --no-<name>.
    """
    name = knob.replace("_", "-")
    match value:
        case bool():
            return (f"--{name}",) if value else (f"--no-{name}",)
        case _:
            return (f"--{name}", str(value))


def start_flags(trial: Trial) -> tuple[str, ...]:
    """Start options that make a trial's change permanent, one string per knob."""
    return tuple(" ".join(flag(knob, value)) for knob, value in trial.plan.change.knobs.items())


def kept_section(run: Run) -> Section:
    """What stands now, with the start flag, Helm values and compose lines."""
    kept = run.kept
    if not kept:
        return Section(
            id="kept",
            kicker="Delta",
            title="What is kept",
            lead=("Nothing. The engine runs with the values it had before the run.",),
        )
    # A later trial may have moved the same knob again: the last value stands.
    standing = {knob: v for trial in kept for knob, v in trial.plan.change.knobs.items()}
    words = [word for knob, value in standing.items() for word in flag(knob, value)]
    return Section(
        id="kept",
        kicker="Delta",
        title="What is kept, and how to make it permanent",
        lead=(
            sentence(f"The engine now runs with {setting(standing)}: {_why(kept)}"),
            "This holds until the engine is restarted. To make it permanent, start the engine "
            "with the same value; pick the form that fits how you start it.",
        ),
        codes=(
            Code(label="vLLM start flag", text=f"vllm serve MODEL {' '.join(words)}"),
            Code(label="Helm values (vLLM production stack)", text=_helm(words)),
            Code(label="Docker Compose", text=_compose(words)),
        ),
    )


def undo_section(run: Run) -> Section:
    """The two ways back."""
    codes = [
        Code(label="Return the engine to its start-up values", text="rtopt restore URL"),
    ]
    lead = ["A restart of the engine without the flag above does the same."] if run.kept else []
    if run.kept:
        codes.insert(0, Code(label="Take back what this run kept", text=f"rtopt undo {run.id}"))
    else:
        lead = ["There is nothing to take back."]
    return Section(id="undo", title="How to undo it", lead=tuple(lead), codes=tuple(codes))


def _why(kept: tuple[Trial, ...]) -> str:
    return "; ".join(f"{doing(t)} passed the gate in trial {t.id}" for t in kept)


def _helm(words: list[str]) -> str:
    lines = ["servingEngineSpec:", "  modelSpec:", "    - vllmConfig:", "        extraArgs:"]
    return "\n".join(lines + [f'          - "{word}"' for word in words])


def _compose(words: list[str]) -> str:
    lines = ["services:", "  vllm:", "    command:  # beside what is there already"]
    return "\n".join(lines + [f'      - "{word}"' for word in words])
