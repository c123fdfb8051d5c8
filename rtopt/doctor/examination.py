"""Which things are looked at, and in which order."""

from rtopt.doctor.check import Check
from rtopt.doctor.installation import installation
from rtopt.doctor.planes import levers, planes
from rtopt.doctor.serving import local_server, named_server
from rtopt.engines.discovery import find_servers


def examine(url: str | None = None) -> tuple[Check, ...]:
    """Look at everything that the loop needs, and at the server when one is named.

    Raises:
        UsageError: `url` is not a server's, or the token that was named cannot be read.
    """
    checks = [*installation(), *planes(), *levers()]
    if url is not None:
        checks += named_server(url)
    return tuple(checks)


def examine_servers() -> tuple[Check, ...]:
    """Look for vLLM servers on this machine: what each shows, what it lets move, and what would.

    Raises:
        UsageError: A token or key that the environment names cannot be read.
    """
    found = find_servers()
    if not found:
        none = "none that this user can see"
        fix = "rtopt serve, or rtopt doctor URL for one elsewhere"
        return (Check(name="servers", found=none, is_ok=False, is_needed=False, fix=fix),)
    return tuple(check for server in found for check in local_server(server))
