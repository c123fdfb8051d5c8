"""Nouns as files: traces, journals, run folders. Everything read is checked here, once."""

from rtopt.storage.append_log import AppendLog
from rtopt.storage.codec import from_json, to_json
from rtopt.storage.noun_file import load, save, write_text
from rtopt.storage.run_dir import RunDir, find_run, home, list_runs, new_run, runs_root, state_root
from rtopt.storage.trace_reader import read_trace
from rtopt.storage.trace_writer import DEFAULT_MAX_BYTES, TraceWriter, write_trace

__all__ = [
    "DEFAULT_MAX_BYTES",
    "AppendLog",
    "RunDir",
    "TraceWriter",
    "find_run",
    "from_json",
    "home",
    "list_runs",
    "load",
    "new_run",
    "read_trace",
    "runs_root",
    "save",
    "state_root",
    "to_json",
    "write_text",
    "write_trace",
]
