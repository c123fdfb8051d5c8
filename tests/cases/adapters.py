"""The adapter of each kind; a kind that is not here is unsupported."""

from typing import Final

from tests.cases.case import Adapter

ADAPTERS: Final[dict[str, Adapter]] = {}
