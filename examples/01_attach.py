"""The five verbs in Python, on a server that runs already: python examples/01_attach.py URL.

It shows the plan and changes nothing; with --try it runs the plan, and the gate decides.
"""

import sys

import rtopt
from rtopt.config import RunConfig
from rtopt.types import Plan

LEVER = "max_num_active_seqs"
SHOWN = ("throughput", "itl_mean", "ttft_mean")


def show_plan(plan: Plan) -> None:
    """Everything that would happen stands in the plan, fixed before anything is touched."""
    print(f"plan: {LEVER} {plan.change.reason}, at most {plan.max_pairs} pairs of blocks")
    print("nothing was changed; add --try to put it behind the gate")


def show(name: str, prediction: rtopt.Prediction) -> None:
    """A few predicted metrics on one line."""
    found = (f"{m} {prediction.metrics[m].value:.4g}" for m in SHOWN if m in prediction.metrics)
    print(f"{name}: {', '.join(found)}")


def main(url: str) -> None:
    """Profile, predict, attribute, apply, report."""
    with rtopt.attach(url, config=RunConfig(profile_s=30)) as session:
        trace = session.profile()
        print(f"recorded: {len(trace.steps)} steps, {len(trace.requests)} finished requests")

        show("as it is", session.predict(trace))
        ceiling = session.state().values()["max_num_seqs"]
        show(f"what if {LEVER}={ceiling}", session.predict(trace, {LEVER: ceiling}))

        attribution = session.attribute(trace)
        for finding in attribution.findings:
            print(f"why: {finding.cause.label}, {finding.share:.0%} of the busy time")
        if attribution.abstained:
            print(f"why: no answer, {attribution.abstained}")

        if "--try" in sys.argv:
            trial = session.apply(LEVER)
            print(f"verdict: {trial.verdict.reason}" if trial else "there was nothing to try")
        else:
            session.plan(LEVER, show=show_plan)
        print(f"report: {session.report()}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("wanted: python examples/01_attach.py URL [--try]")
    try:
        main(sys.argv[1])
    except rtopt.RtoptError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
