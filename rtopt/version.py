"""Which rtopt this is."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("rtopt")
    except PackageNotFoundError:  # a plain checkout on the path
        return "0+unknown"


VERSION = _installed()
