"""The command line: one file per command, each loaded only when it is called."""

from rtopt.cli.entry import main

__all__ = ["main"]
