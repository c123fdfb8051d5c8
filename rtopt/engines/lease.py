"""Keeps a lease alive from a thread while a change is on trial."""

import threading
from collections.abc import Callable

from rtopt.errors import RtoptError


class LeaseKeeper:
    """Renews three times per lease; the first failure is kept for whoever asks."""

    def __init__(self, renew: Callable[[], None], lease_s: float) -> None:
        self._renew = renew
        self._every_s = lease_s / 3
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: RtoptError | None = None

    def start(self) -> None:
        """Begin to renew; does nothing when it already does."""
        if self._thread is None:
            self._stop.clear()
            self._failure = None
            self._thread = threading.Thread(target=self._run, name="rtopt-renew", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop renewing and wait for a renewal under way."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raise what a renewal failed with, if one did."""
        if self._failure is not None:
            raise self._failure

    def confirm(self) -> None:
        """Renew now if there is a lease; raise if it was lost, for example while we were frozen."""
        self.check()
        if self._thread is not None:
            self._renew()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self._renew()
            except RtoptError as error:
                self._failure = error
                return
