"""docs/overlay.md says about the wire what the wire says about itself."""

import re
from pathlib import Path

from rtopt.overlay.rtopt_overlay.knobs import LIVE_KNOBS
from rtopt.overlay.rtopt_overlay.wire import MAX_LEASE_S, STATUS, TOKEN_HEADER, WIRE

PAGE = (Path(__file__).parents[3] / "docs" / "overlay.md").read_text(encoding="utf-8")


def test_the_table_of_errors_is_the_one_that_is_sent() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", PAGE, flags=re.MULTILINE)
    assert {code: int(status) for code, status in rows} == STATUS


def test_the_numbers_and_names_of_the_wire_are_on_the_page() -> None:
    assert f'"wire": {WIRE}' in PAGE
    assert TOKEN_HEADER in PAGE
    assert f"at most {MAX_LEASE_S:g} s" in PAGE


def test_every_live_knob_is_on_the_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `scheduler\.(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert dict(rows) == {knob.name: knob.attribute for knob in LIVE_KNOBS}
