"""One answer of a server's /metrics page, as plain series by name.

Names are Prometheus's own. Labels fall away: series of the same name add up over engines, reasons
and the like, and shares are averaged; only a histogram's `le` stays, in the name.
"""

# in:   vllm:generation_tokens_total{engine="0",model_name="m"} 120.0
#       vllm:generation_tokens_total{engine="1",model_name="m"} 80.0
#       vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
#       vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 12.0
# out:  {"vllm:generation_tokens_total": 200.0, "vllm:kv_cache_usage_perc": 0.5,
#        'vllm:time_to_first_token_seconds_bucket{le="0.1"}': 12.0}

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

PREFIX: Final = "vllm:"
INFO: Final = "vllm:cache_config_info"
START: Final = "process_start_time_seconds"
ROUNDING: Final = 1e-9
"""Sums over processes are added up in any order, so the last digits may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """Everything of one answer that rtopt uses."""

    series: Mapping[str, float]
    """vLLM's series by name; one that is no finite number is absent."""
    counters: frozenset[str]
    """Names of the series that only grow while the server lives."""
    start_s: float | None
    """When the answering process started, Unix seconds; absent with several API servers."""
    model: str | None = None
    """Served model, by its label."""
    cache_config: Mapping[str, str] = field(default_factory=dict)
    """Labels of vllm:cache_config_info."""
    num_engines: int = 1


def parse_scrape(text: str) -> Scrape:
    """Read the text format; a page without vLLM's series gives an empty `series`.

    Raises:
        ValueError: It is not the text format.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    counters: set[str] = set()
    labelled: defaultdict[str, set[str]] = defaultdict(set)
    start_s: float | None = None
    cache_config: Mapping[str, str] = {}
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            if name == START:
                start_s = value
            if name == INFO:
                cache_config = labels
            if not _is_wanted(name, value):
                continue
            key = f'{name}{{le="{labels["le"]}"}}' if "le" in labels else name
            found[key].append(value)
            for label in ("engine", "model_name"):
                if label in labels:
                    labelled[label].add(labels[label])
            if family.type in ("counter", "histogram"):
                counters.add(key)
    return Scrape(
        series={key: _joined(key, values) for key, values in found.items()},
        counters=frozenset(counters),
        start_s=start_s,
        model=min(labelled["model_name"], default=None),
        cache_config=cache_config,
        num_engines=max(1, len(labelled["engine"])),
    )


def difference(before: Scrape, after: Scrape) -> str | None:
    """Why two answers, one after the other, are not of the same process; None when they may be."""
    if before.start_s != after.start_s:
        return "the start time of the answering process changed"
    for name in sorted(before.counters & after.counters):
        was, is_ = before.series[name], after.series[name]
        if is_ < was - ROUNDING * (1 + abs(was)):
            return f"the counter {name} fell from {was:g} to {is_:g}"
    return None


def _is_wanted(name: str, value: float) -> bool:
    """Whether it is an amount of vLLM's; `_created` is a moment."""
    is_amount = name != INFO and not name.endswith("_created")
    return name.startswith(PREFIX) and is_amount and math.isfinite(value)


def _joined(key: str, values: list[float]) -> float:
    """Sum over the engines; of a share, which ends in _perc in vLLM's names, the mean."""
    return sum(values) / len(values) if key.endswith("_perc") else sum(values)
