"""The load generator as a process: settings as JSON in, the tally as JSON on the last line."""

import asyncio
import json
import signal
import sys
from dataclasses import asdict

from rtopt.traffic.closed_loop import ClosedLoop, Tally, offer


async def _run(load: ClosedLoop) -> Tally:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return await offer(load, stop)


if __name__ == "__main__":
    tally = asyncio.run(_run(ClosedLoop(**json.loads(sys.argv[1]))))
    sys.stdout.write(json.dumps(asdict(tally)) + "\n")
