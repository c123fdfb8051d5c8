import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.backends.cupti import CuptiSession
from rtopt.backends.cupti_records import event_of
from rtopt.errors import UnavailableError
from rtopt.types import DeviceEvent, HostEvent


class NotSupportedError(RuntimeError):
    """Like cupti._internal.utils.NotSupportedError: no cuptiError."""


class CuptiError(Exception):
    """Like cupti.cupti.cuptiError, which is no RuntimeError."""

    def __init__(self, status: int) -> None:
        super().__init__(f"CUPTI status {status}")
        self.status = status


def kernel(**more: Any) -> Any:
    # The name of the class differs from release to release.
    activity = type(f"ActivityKernel{len(more) + 10}", (SimpleNamespace,), {})
    fields: dict[str, Any] = {
        "kind": 10,
        "start": 1000,
        "end": 1500,
        "name": "gemm",
        "device_id": 0,
        "stream_id": 7,
        "correlation_id": 42,
        "graph_id": 0,
        "graph_node_id": 0,
        "grid_x": 4,
        "grid_y": 2,
        "grid_z": 1,
        "block_x": 128,
        "block_y": 1,
        "block_z": 1,
    }
    return activity(**fields | more)


@dataclass
class Library:
    """Behaves as cupti-python 13.0 does in one process: one subscriber, one pair of callbacks."""

    records: list[Any] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    holder: str | None = None
    dropped: int = 0
    calls: list[str] = field(default_factory=list)
    completed: Callable[[list[Any]], None] | None = None
    enabled: set[int] = field(default_factory=set)

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failures:
            raise self.failures[name]

    def subscribe(self, callback: Any, userdata: Any) -> int:
        self._called("subscribe")
        if self.holder is not None:
            raise CuptiError(39)
        self.holder = "us"
        return 1

    def unsubscribe(self, subscriber: int) -> None:
        self._called("unsubscribe")
        self.holder = None

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        self._called("activity_register_callbacks")
        size, records = requested()
        assert size > 0
        assert records == 0
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        self._called("activity_enable")
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self._called("activity_disable")
        self.enabled.remove(kind)

    def activity_flush_all(self, flag: int) -> None:
        self._called("activity_flush_all")
        assert self.completed is not None
        thread = threading.Thread(target=self.completed, args=(self.records,))
        thread.start()
        thread.join()

    def activity_get_num_dropped_records(self, context: int, stream: int) -> int:
        self._called("activity_get_num_dropped_records")
        return self.dropped

    def get_timestamp(self) -> int:
        self._called("get_timestamp")
        return time.time_ns() - 5_000

    def finalize(self) -> None:
        self._called("finalize")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    install(monkeypatch, made)
    return made


def install(monkeypatch: pytest.MonkeyPatch, library: Library, **more: Any) -> None:
    module = ModuleType("cupti.cupti")
    for name, value in vars(Library).items():
        if callable(value) and not name.startswith("_"):
            setattr(module, name, getattr(library, name))
    module.cuptiError = CuptiError  # type: ignore[attr-defined] # as the library names it
    for name, value in more.items():
        setattr(module, name, value)
    package = ModuleType("cupti")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setitem(sys.modules, "cupti.cupti", module)


def test_a_session_gives_events_in_order_and_leaves_cupti_free(library: Library) -> None:
    library.records = [kernel(start=2000, end=2600, graph_id=3, graph_node_id=9), kernel()]
    with CuptiSession() as session:
        assert library.enabled == {10, 1, 2}
    activity = session.activity
    assert activity is not None
    first, second = activity.device
    assert first == DeviceEvent(
        t_ns=1000,
        dur_ns=500,
        name="gemm",
        device=0,
        stream=7,
        correlation=42,
        grid=(4, 2, 1),
        block=(128, 1, 1),
    )
    assert (second.graph, second.node) == (3, 9)
    assert library.holder is None
    assert library.enabled == set()
    assert library.calls[-1] == "finalize"


def test_the_subscription_comes_before_the_buffers(library: Library) -> None:
    with CuptiSession():
        pass
    assert library.calls.index("subscribe") < library.calls.index("activity_register_callbacks")


def test_another_holder_is_named_and_keeps_its_buffers(library: Library) -> None:
    library.holder = "kineto"
    with pytest.raises(UnavailableError, match=r"torch\.profiler") as refused:
        CuptiSession().start()
    assert refused.value.facts["reason"] == "busy"
    assert refused.value.facts["code"] == 39
    assert library.calls == ["subscribe"], "registering or finalizing would take theirs away"


def test_a_release_that_tells_of_a_running_session_is_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library()
    install(monkeypatch, library, is_tracing_session_running=lambda: True)
    with pytest.raises(UnavailableError) as refused:
        CuptiSession().start()
    assert refused.value.facts["reason"] == "busy"
    assert library.calls == []


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    with pytest.raises(UnavailableError, match=r"rtopt\[cupti\]") as refused:
        CuptiSession()
    assert refused.value.facts["tried"] == "import cupti.cupti"


def test_no_driver_is_one_error_that_says_so(library: Library) -> None:
    library.failures["subscribe"] = NotSupportedError("CUDA driver is not found")
    with pytest.raises(UnavailableError, match="No NVIDIA driver is installed") as refused:
        CuptiSession().start()
    assert refused.value.facts["tried"] == "subscribe"
    assert "CUDA driver is not found" in str(refused.value.facts["came_back"])


def test_an_unknown_error_carries_its_code(library: Library) -> None:
    library.failures["subscribe"] = CuptiError(999)
    with pytest.raises(UnavailableError, match="code 999") as refused:
        CuptiSession().start()
    assert refused.value.facts["code"] == 999


@pytest.mark.parametrize(
    "name", ["activity_register_callbacks", "activity_enable", "get_timestamp"]
)
def test_a_start_that_fails_leaves_nothing_on(library: Library, name: str) -> None:
    library.failures[name] = CuptiError(1)
    with pytest.raises(UnavailableError, match=name):
        CuptiSession().start()
    assert library.enabled == set()
    assert library.holder is None


def test_a_stop_that_fails_gives_cupti_back(library: Library) -> None:
    session = CuptiSession().start()
    library.failures["activity_flush_all"] = CuptiError(1)
    with pytest.raises(UnavailableError, match="activity_flush_all"):
        session.stop()
    assert library.enabled == set()
    assert library.holder is None


def test_dropped_records_are_counted(library: Library) -> None:
    library.dropped = 17
    activity = CuptiSession().start().stop()
    assert activity.dropped == 17


def test_dropped_records_are_unknown_where_the_release_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library()
    install(monkeypatch, library)
    monkeypatch.delattr(sys.modules["cupti.cupti"], "activity_get_num_dropped_records")
    assert CuptiSession().start().stop().dropped is None


def test_clocks_are_paired_at_start_and_stop(library: Library) -> None:
    first, last = CuptiSession().start().stop().pairs
    for pair in (first, last):
        assert pair.before_ns <= pair.after_ns
        assert abs(pair.before_ns - pair.cupti_ns) < 1e9
    assert last.cupti_ns > first.cupti_ns


def test_the_callback_only_queues(library: Library) -> None:
    class Unread:
        """Fails when it is looked into."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was read in CUPTI's thread")

    CuptiSession().start()
    assert library.completed is not None
    library.completed([Unread()])


def test_the_plane_says_that_no_gpu_has_run_it(library: Library) -> None:
    plane = CuptiSession().start().stop().plane
    assert (plane.plane, plane.name) == ("event", "cupti")
    assert plane.reason == "not yet run on a GPU"


def test_records_of_other_kinds_and_without_times_are_counted(library: Library) -> None:
    library.records = [SimpleNamespace(kind=59), kernel(start=0, end=0), SimpleNamespace()]
    activity = CuptiSession().start().stop()
    assert activity.device == ()
    assert activity.unread == {"59": 1, "10": 1, "without a kind": 1}


@pytest.mark.parametrize("kind", [1, 22])
def test_a_copy_has_bytes_and_a_direction(kind: int) -> None:
    record = SimpleNamespace(kind=kind, start=5, end=9, bytes=1 << 20, copy_kind=1, stream_id=0)
    event = event_of(record)
    assert isinstance(event, DeviceEvent)
    assert (event.what, event.bytes, event.direction) == ("memcpy", 1 << 20, "h2d")
    assert event.stream == 0
    assert event.device is None, "missing is absent, never 0"


def test_a_launch_shares_its_correlation() -> None:
    record = SimpleNamespace(
        kind=5, start=5, end=9, cbid=211, thread_id=3, correlation_id=42, process_id=1
    )
    assert event_of(record) == HostEvent(
        t_ns=5, dur_ns=4, name="runtime 211", what="launch", thread=3, correlation=42
    )


def test_a_collective_is_told_from_other_kernels() -> None:
    event = event_of(kernel(name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL"))
    assert isinstance(event, DeviceEvent)
    assert event.what == "collective"


ANYTHING = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.floats())


@given(
    kind=st.one_of(ANYTHING, st.sampled_from([1, 2, 4, 5, 10, 17, 22, 38, 51])),
    fields=st.dictionaries(
        st.sampled_from(["start", "end", "name", "cbid", "bytes", "type", "grid_x", "stream_id"]),
        ANYTHING,
    ),
)
def test_any_record_is_an_event_with_a_time_or_counted(kind: Any, fields: dict[str, Any]) -> None:
    event = event_of(SimpleNamespace(kind=kind, **fields))
    if not isinstance(event, str):
        assert event.t_ns > 0
        assert event.dur_ns >= 0
