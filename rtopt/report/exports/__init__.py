"""A trace in the formats of other programs."""

from rtopt.report.exports.table import EXPORTS, Export, export

__all__ = ["EXPORTS", "Export", "export"]
