"""Statistics that stages share: the mixture-t e-process, and the stopping rule built on it."""

from rtopt.stats.mixture_t import confidence_sequence, fewest, log_e, log_e_path
from rtopt.stats.rule import HARM_E, Characteristics, Rule, Stop, simulate

__all__ = [
    "HARM_E",
    "Characteristics",
    "Rule",
    "Stop",
    "confidence_sequence",
    "fewest",
    "log_e",
    "log_e_path",
    "simulate",
]
