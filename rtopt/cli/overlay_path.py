"""rtopt overlay-path."""

from rtopt.cli.show import say
from rtopt.engines.launch import overlay_path


def run() -> None:
    """Print the folder that switches the overlay on in someone else's launcher.

    PYTHONPATH=$(rtopt overlay-path) VLLM_PLUGINS=rtopt RTOPT_TOKEN_FILE=... vllm serve MODEL
    """
    say(str(overlay_path()))
