"""The load generator as a process: settings as JSON in, the tally as JSON on the last line."""

import asyncio
import gc
import json
import os
import signal
import sys
from dataclasses import asdict

from rtopt.errors import RtoptError
from rtopt.traffic.closed_loop import ClosedLoop
from rtopt.traffic.load_process import API_KEY_ENV
from rtopt.traffic.offering import offer
from rtopt.traffic.replay import Replay
from rtopt.traffic.tally import Tally


async def _run(load: ClosedLoop | Replay, api_key: str | None) -> Tally:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return await offer(load, stop, api_key=api_key)


def _main(settings: str) -> int:
    data = json.loads(settings)
    load = Replay(**data) if "file" in data else ClosedLoop(**data)
    # A collection over everything takes milliseconds, and a deadline may fall into it.
    gc.disable()
    try:
        tally = asyncio.run(_run(load, os.environ.get(API_KEY_ENV)))
    except RtoptError as error:
        sys.stdout.write(json.dumps({"error": str(error), "exit_code": error.exit_code}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps(asdict(tally)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
