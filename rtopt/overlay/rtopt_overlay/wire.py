"""What both sides of the HTTP border must agree on."""

WIRE = 1
"""Raised when a route or a field changes its meaning; a client refuses another number."""

PREFIX = "/rtopt"
TOKEN_HEADER = "x-rtopt-token"
TOKEN_ENV = "RTOPT_TOKEN"
TOKEN_FILE_ENV = "RTOPT_TOKEN_FILE"

MAX_LEASE_S = 60.0
"""A dead controller's change never stays longer than this."""
MAX_RECORD_S = 3600.0
MAX_LISTENERS = 16
"""Recordings open at once; each costs the front end a little."""
BEAT_S = 0.5
"""A recording stream says something at least this often."""

STATUS = {
    "knob": 400,
    "usage": 400,
    "token": 401,
    "read_only": 403,
    "held": 409,
    "unavailable": 501,
    "engine": 503,
}
"""Error code to HTTP status. The body is {"error": {"code", "message"}}."""
