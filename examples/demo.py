"""The whole loop on a real vLLM: `make demo`.

Starts an unmodified vLLM with a small model and a common but poor setting, offers load, lets rtopt
find and prove something better, and ends what it started. Everything that is printed was measured.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import rtopt
from rtopt.cli.show import fail, progress, say
from rtopt.config import RunConfig, read_config
from rtopt.engines.vllm_process import VllmProcess
from rtopt.report import describe_plan, describe_run
from rtopt.traffic import ClosedLoop, LoadProcess
from rtopt.types import Plan

HERE = Path(__file__).parent
MODEL = "SmolLM2-135M-Instruct"
FLAGS = ["--enforce-eager", "--max-num-seqs", "32", "--max-num-active-seqs", "4"]
RAMP_S = 12
"""Clients join over so long; examples/demo.toml lets the recording settle for a bit longer."""

PLAN = f"""\
rtopt demo: a real vLLM on this machine's CPU, made faster and proven.
  1. start vLLM with {MODEL} and: {" ".join(FLAGS)}
     (slots for 32 requests, but only 4 may run at once)          about 1 minute
  2. offer load: 32 clients, fresh prompts, short answers
  3. profile -> predict -> attribute -> apply -> report           4 to 7 minutes
  4. end what was started
"""


def main(config: RunConfig) -> None:
    """Serve, load, tune, report."""
    say(PLAN)
    with ExitStack() as open_:
        said = open_.enter_context(progress())
        folder = open_.enter_context(TemporaryDirectory())
        server = VllmProcess(flags=FLAGS, log=Path(folder) / "vllm.log")
        open_.callback(server.stop)
        server.start(said)
        say(f"vLLM is up at {server.url}")
        session = open_.enter_context(rtopt.attach(server.url, config=config, progress=said))
        session.prepare()
        clients = config.load.clients if config.load and config.load.clients else 32
        offered = ClosedLoop(url=server.url, model=MODEL, clients=clients, ramp_s=RAMP_S, seed=1)
        load = open_.enter_context(LoadProcess(offered))

        def agree(plan: Plan) -> bool:
            say(describe_plan(plan))
            return True

        session.tune(confirm=agree)
        page = session.report()
        tally = load.stop()
        said("stopping vLLM", None)
    if session.last_run is not None:
        say(describe_run(session.last_run.path))
    say(
        f"{tally.finished} requests were answered in all, {tally.failed} failed;"
        f" the load generator used {tally.cpu_frac:.1%} of one core."
    )
    say(f"\nThe report: {page}")


if __name__ == "__main__":
    try:
        main(read_config(HERE / "demo.toml", {}))
    except rtopt.RtoptError as error:
        fail(str(error))
        sys.exit(error.exit_code)
