"""Every command, its file, and its line in the overview; the five verbs first."""

COMMANDS: dict[str, str] = {
    "profile": "Record a running server into a trace.",
    "predict": "Replay a trace on the engine's own scheduler, at present or other knobs.",
    "attribute": "Say what binds, with the numbers used, or abstain.",
    "apply": "Try one lever behind the gate; keep it or restore.",
    "report": "Write the HTML report of a run.",
    "tune": "Run the whole loop within a budget.",
    "undo": "Take back what a run kept.",
    "restore": "Return a server to its start-up values.",
    "serve": "Start an unmodified vLLM with the overlay on.",
    "overlay-path": "Print the folder that switches the overlay on in someone else's launcher.",
    "export": "Write a trace in another program's format.",
    "traffic": "Look at, convert and offer workloads.",
    "doctor": "Say what is installed, what works here, and what would fix the rest.",
}
"""Command name to the first line of its help; the file is the name with underscores."""
