"""One engine's knobs under a lease. Everything here runs on the engine's own loop thread.

A change on trial is held by one controller and has a deadline. When nobody renews it, the watchdog
thread puts one message on the engine's input queue, which also wakes an idle engine, and the loop
thread restores the snapshot: a thread that wrote a knob while `schedule()` runs could trip the
scheduler's own assertions.
"""

import hashlib
import re
import secrets
import threading
import time
from typing import Any

from vllm.v1.engine import EngineCoreRequestType

from .border import failures, guarded, log
from .effective import effective_config, kv_config, machine, model_card, public_name
from .knobs import LiveKnob, present_knobs
from .wire import MAX_LEASE_S, WIRE

_HOLDER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SHOWN = 60


class RefusedError(Exception):
    """A request that was not carried out; nothing was changed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Control:
    """Start-up values, snapshot, lease and history of one engine."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._knobs: dict[str, LiveKnob] = {k.name: k for k in present_knobs(core.scheduler)}
        self.boot = secrets.token_hex(8)
        self._start = self._values()
        self._snapshot = dict(self._start)
        self._holder: str | None = None
        self._deadline = 0.0
        self._marks: list[dict[str, Any]] = []
        self._wake = threading.Condition()
        self._watchdog: threading.Thread | None = None
        self._set_ns: list[int] = []

    # -- reading ---------------------------------------------------------------------------------

    def _values(self) -> dict[str, int]:
        return {n: getattr(self._core.scheduler, k.attribute) for n, k in self._knobs.items()}

    def state(self, _args: dict[str, Any]) -> dict[str, Any]:
        """Everything that a client needs to know, now."""
        config, scheduler = self._core.vllm_config, self._core.scheduler
        values = self._values()
        running, waiting = scheduler.get_request_counts()
        return {
            "wire": WIRE,
            "boot": self.boot,
            "model": public_name(str(config.model_config.model)),
            "config": effective_config(config),
            "kv": kv_config(scheduler),
            "model_config": model_card(config),
            "machine": machine(),
            "knobs": [
                {
                    "name": name,
                    "value": values[name],
                    "start": self._start[name],
                    "snapshot": self._snapshot[name],
                    "low": knob.floor(config),
                    "high": knob.ceiling(config),
                }
                for name, knob in self._knobs.items()
            ],
            "held": self._held(),
            "running": running,
            "waiting": waiting,
            "mono_ns": time.monotonic_ns(),
            "unix_ns": time.time_ns(),
            "failures": dict(failures),
            "set_us": [ns / 1000 for ns in self._set_ns[-100:]],
        }

    def _held(self) -> dict[str, Any] | None:
        remaining = self._deadline - time.monotonic()
        if self._holder is None:
            return None
        return {"holder": self._holder, "remaining_s": max(0.0, remaining)}

    def in_flight(self, args: dict[str, Any]) -> dict[str, Any]:
        """Requests in the engine now; ids are salted hashes, and no text leaves."""
        salt = bytes.fromhex(args["salt"])
        offset_ns = time.monotonic_ns() - time.time_ns()
        scheduler = self._core.scheduler
        running = {r.request_id for r in scheduler.running}
        return {
            "requests": [
                {
                    "id": hash_id(salt, r.request_id),
                    "prompt_tokens": r.num_prompt_tokens,
                    "computed_tokens": r.num_computed_tokens,
                    "output_tokens": r.num_output_tokens,
                    "arrival_ns": int(r.arrival_time * 1e9) + offset_ns,
                    "max_tokens": r.max_tokens,
                    "is_waiting": r.request_id not in running,
                }
                for r in list(scheduler.requests.values())
            ]
        }

    def marks(self, args: dict[str, Any]) -> dict[str, Any]:
        """Changes since a monotonic time."""
        return {"marks": [m for m in self._marks if m["t_ns"] > args["since_ns"]]}

    def observe(self, args: dict[str, Any]) -> dict[str, Any]:
        """Switch vLLM's own step details on or off; they travel to the stat logger."""
        observability = self._core.vllm_config.observability_config
        if not hasattr(observability, "enable_logging_iteration_details"):
            raise RefusedError(
                "unavailable", "this vLLM has no iteration details (0.26 or later has them)"
            )
        observability.enable_logging_iteration_details = bool(args["on"])
        return {"on": bool(args["on"]), "log_stats": bool(self._core.log_stats)}

    # -- changing --------------------------------------------------------------------------------

    def set(self, args: dict[str, Any]) -> dict[str, Any]:
        """Put values on trial for `holder` until the lease ends."""
        began = time.perf_counter_ns()
        holder, lease_s = self._claim(args)
        if not isinstance(args.get("knobs"), dict) or not args["knobs"]:
            raise RefusedError("usage", "no knobs were given. Nothing was changed.")
        for name, value in args["knobs"].items():
            self._check(name, value)
        before = self._values()
        for name, value in args["knobs"].items():
            setattr(self._core.scheduler, self._knobs[name].attribute, value)
        self._lease(holder, lease_s)
        self._mark("set", holder)
        self._set_ns.append(time.perf_counter_ns() - began)
        return {"before": {n: before[n] for n in args["knobs"]}, "values": self._values()}

    def renew(self, args: dict[str, Any]) -> dict[str, Any]:
        """Move the deadline of a lease that `holder` has."""
        holder, lease_s = self._claim(args)
        if self._holder is None:
            raise RefusedError(
                "held", "the lease has run out and the snapshot was restored; nothing is on trial"
            )
        self._lease(holder, lease_s)
        return {"held": self._held()}

    def commit(self, args: dict[str, Any]) -> dict[str, Any]:
        """Make the present values the snapshot, and end the lease."""
        holder = self._own(args)
        self._snapshot = self._values()
        self._release()
        self._mark("commit", holder)
        return {"values": self._values()}

    def restore(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return to the snapshot, or with to="start" to the start-up values."""
        holder = _holder_of(args)
        to, force = args.get("to", "snapshot"), args.get("force", False)
        if to not in ("snapshot", "start") or not isinstance(force, bool):
            raise RefusedError(
                "usage",
                f"to={_shown(to)}, force={_shown(force)}: wanted to=snapshot or start, and"
                " force=true or false. Nothing was changed.",
            )
        if self._holder not in (None, holder) and not force:
            raise RefusedError("held", self._held_by())
        if to == "start":
            self._snapshot = dict(self._start)
        self._restore("restore", holder)
        return {"values": self._values()}

    def expire(self) -> None:
        """Restore if the lease has really run out; asked for by the watchdog."""
        if self._holder is not None and time.monotonic() >= self._deadline:
            log.warning("rtopt overlay: a lease ran out; the snapshot is restored.")
            self._restore("expire", self._holder)

    # -- parts -----------------------------------------------------------------------------------

    def _claim(self, args: dict[str, Any]) -> tuple[str, float]:
        holder = _holder_of(args)
        lease_s: Any = args.get("lease_s")
        is_number = isinstance(lease_s, int | float) and not isinstance(lease_s, bool)
        if not is_number or not 0 < lease_s <= MAX_LEASE_S:
            raise RefusedError(
                "usage",
                f"lease_s={_shown(lease_s)}: must be above 0 and at most {MAX_LEASE_S:g}."
                " Nothing was changed.",
            )
        if self._holder not in (None, holder):
            raise RefusedError("held", self._held_by())
        if not hasattr(self._core, "input_queue"):
            raise RefusedError(
                "unavailable",
                "this engine runs inside its front end, without the queue that a lease needs",
            )
        return holder, float(lease_s)

    def _own(self, args: dict[str, Any]) -> str:
        holder = _holder_of(args)
        if self._holder is None:
            raise RefusedError(
                "held", "nothing is on trial: the lease ran out and the snapshot stands"
            )
        if self._holder != holder:
            raise RefusedError("held", self._held_by())
        return holder

    def _held_by(self) -> str:
        remaining = max(0.0, self._deadline - time.monotonic())
        return (
            f"the engine is held by {self._holder} for another {remaining:.1f} s."
            " Nothing was changed."
        )

    def _check(self, name: str, value: object) -> None:
        if name not in self._knobs:
            known = ", ".join(sorted(self._knobs)) or "none in this engine version"
            raise RefusedError(
                "knob",
                f"{_shown(name)}: unknown knob; this engine has {known}. Nothing was changed.",
            )
        knob, config = self._knobs[name], self._core.vllm_config
        low, high = knob.floor(config), knob.ceiling(config)
        now = getattr(self._core.scheduler, knob.attribute)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RefusedError(
                "knob",
                f"{name}={_shown(value)}: must be a whole number from {low} to {high}"
                f" (the engine runs with {now}). Nothing was changed.",
            )

    def _restore(self, what: str, by: str) -> None:
        for name, value in self._snapshot.items():
            setattr(self._core.scheduler, self._knobs[name].attribute, value)
        self._release()
        self._mark(what, by)

    def _mark(self, what: str, by: str) -> None:
        self._marks.append(
            {"t_ns": time.monotonic_ns(), "what": what, "by": by, "knobs": self._values()}
        )
        del self._marks[:-1000]

    # -- the lease and its watchdog --------------------------------------------------------------

    def _lease(self, holder: str, lease_s: float) -> None:
        with self._wake:
            self._holder, self._deadline = holder, time.monotonic() + lease_s
            self._wake.notify()
        if self._watchdog is None:
            self._watchdog = threading.Thread(target=self._watch, name="rtopt-lease", daemon=True)
            self._watchdog.start()

    def _release(self) -> None:
        with self._wake:
            self._holder = None
            self._wake.notify()

    def _watch(self) -> None:
        while True:
            with self._wake:
                while self._holder is None:
                    self._wake.wait()
                left = self._deadline - time.monotonic()
                if left > 0:
                    self._wake.wait(left)
                    continue
            self._ask_to_expire()
            time.sleep(0.05)  # give the loop thread time before asking again

    @guarded("watchdog")
    def _ask_to_expire(self) -> None:
        """Put one message on the engine's input queue, unless it is shutting down.

        The method it names returns a future that never completes, so no answer is sent: an answer
        to a call that no client made would bring the front end down.
        """
        if not self._core.is_running():
            return
        message = (0, secrets.randbits(62), "rtopt_expire", ())
        self._core.input_queue.put_nowait((EngineCoreRequestType.UTILITY, message))


def _holder_of(args: dict[str, Any]) -> str:
    """The controller's name: it is shown to others, so it is short and plain."""
    holder = args.get("holder")
    if not isinstance(holder, str) or not _HOLDER.fullmatch(holder):
        raise RefusedError(
            "usage",
            f"holder={_shown(holder)}: wanted 1 to 64 letters, digits, dots, dashes or"
            " underscores. Nothing was changed.",
        )
    return holder


def _shown(value: object) -> str:
    """A value as it was given, in ASCII and cut short."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def hash_id(salt: bytes, request_id: str) -> str:
    """Salted, so that recordings cannot be joined and no client-given id leaves."""
    return hashlib.blake2b(request_id.encode(), key=salt, digest_size=8).hexdigest()
