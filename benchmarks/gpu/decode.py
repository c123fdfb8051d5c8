"""A synthetic decode step: 32 layers of four matrix products, attention and norms, in torch."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of the model and the batch."""

    layers: int
    hidden: int
    heads: int
    batch: int
    context: int

    @classmethod
    def of(cls, *, is_dry: bool) -> "Sizes":
        """About an 8B model at batch 16; dry: what a CPU does in a moment."""
        if is_dry:
            return cls(layers=4, hidden=64, heads=2, batch=2, context=16)
        return cls(layers=32, hidden=4096, heads=32, batch=16, context=1024)


class Decode:
    """The step, eager or as a CUDA graph."""

    def __init__(self, sizes: Sizes, *, is_dry: bool, fill: str = "random") -> None:
        self.device = "cpu" if is_dry else "cuda"
        self.sizes, self.is_dry = sizes, is_dry
        torch.manual_seed(7)
        make = torch.zeros if fill == "zeros" else torch.randn

        def tensor(*shape: int) -> Any:
            return make(*shape, dtype=torch.bfloat16, device=self.device) * 0.02

        h, wide = sizes.hidden, 4 * sizes.hidden
        self._weights = [
            (tensor(h, 3 * h), tensor(h, h), tensor(h, wide), tensor(wide, h))
            for _ in range(sizes.layers)
        ]
        cache = (sizes.batch, sizes.heads, sizes.context, h // sizes.heads)
        self._keys, self._values = tensor(*cache), tensor(*cache)
        self._input = tensor(sizes.batch, h)

    @torch.inference_mode()
    def step(self) -> Any:
        """One decode step."""
        sizes, x = self.sizes, self._input
        for qkv, out, up, down in self._weights:
            normed = torch.nn.functional.rms_norm(x, (sizes.hidden,))
            query = (normed @ qkv)[:, : sizes.hidden]
            query = query.view(sizes.batch, sizes.heads, 1, -1)
            seen = torch.nn.functional.scaled_dot_product_attention(query, self._keys, self._values)
            x = x + seen.reshape(sizes.batch, sizes.hidden) @ out
            normed = torch.nn.functional.rms_norm(x, (sizes.hidden,))
            x = x + torch.nn.functional.silu(normed @ up) @ down
        return x

    def graph(self) -> Callable[[], Any]:
        """The step captured once; each call replays it. On the CPU, the step itself."""
        if self.is_dry:
            return self.step
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            self.step()
        replay: Callable[[], Any] = captured.replay
        return replay

    def wait(self) -> None:
        """Until the device has done what it was given."""
        if not self.is_dry:
            torch.cuda.synchronize()

    def time_ms(self, call: Callable[[], Any], *, seconds: float) -> dict[str, float]:
        """Median and spread of one call, waited for each time."""
        for _ in range(3):
            call()
        self.wait()
        taken: list[float] = []
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s or len(taken) < 5:
            began_s = time.perf_counter()
            call()
            self.wait()
            taken.append((time.perf_counter() - began_s) * 1e3)
        tenths = statistics.quantiles(taken, n=10)
        return {
            "median_ms": statistics.median(taken),
            "p10_ms": tenths[0],
            "p90_ms": tenths[-1],
            "num_calls": len(taken),
        }
