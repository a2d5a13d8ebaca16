"""The loggers of this package, by topic, and what of an error may stand in a log.

Levels: WARNING is for what somebody should look into, although calls went on; INFO for what explains a delay and passes
by itself; DEBUG for everyday life. At INFO and above no record names a thread, a tenant or a checkpoint; at no level
does one hold a state, metadata or a password.
"""

from __future__ import annotations

import logging
import re

from ..drivers.interface import DriverError, ServerError
from ..errors import SetupError
from .topology import NoPrimary, NoSecondary

#: Opened: DEBUG. Closed for age or on request: DEBUG. Gone while idle: INFO. Lost in use: WARNING.
CONNECTIONS = logging.getLogger("locus_mysql.connections")

#: A batch is sent again: INFO.
RETRIES = logging.getLogger("locus_mysql.retries")

#: A batch was undone, as another writer was faster, or as what it is about is not there; the operation goes on from
#: that, or says so: DEBUG. A save branched: WARNING.
CONFLICTS = logging.getLogger("locus_mysql.conflicts")

#: A turn was lost, or could not be renewed or given back: WARNING.
TURNS = logging.getLogger("locus_mysql.turns")

#: A call took longer than ``slow_ms``, or a health check failed: WARNING.
CALLS = logging.getLogger("locus_mysql.calls")

#: What saves and `vacuum` removed: DEBUG. It failed: WARNING.
HOUSEKEEPING = logging.getLogger("locus_mysql.housekeeping")

#: What is damaged was left out of an answer: WARNING. Which thread's it is: DEBUG.
DAMAGE = logging.getLogger("locus_mysql.damage")

#: The primary storage of working memory is away, or what was written meanwhile lost against others' writes: WARNING. It
#: is back: INFO.
WORKING = logging.getLogger("locus_mysql.working")

#: An option that was given has no effect: WARNING, once in a process.
OPTIONS = logging.getLogger("locus_mysql.options")

#: Where a quotation begins, which may be of data. Not an apostrophe.
_QUOTES = re.compile(r"(?<!\w)['\"]")

#: Longest reason that is logged, in characters.
_LONGEST = 300


def told(error: BaseException) -> str:
    """What a log may say of an error. The server's words may quote data, and those of our errors name threads."""
    if isinstance(error, NoPrimary | NoSecondary):
        return "; ".join(told(reason) for reason in error.reasons)
    if isinstance(error, ServerError):
        return f"error {error.errno}"
    if not isinstance(error, DriverError):
        cause = error.__cause__
        return type(error).__name__ + (f" ({told(cause)})" if isinstance(cause, DriverError) else "")
    words = _QUOTES.split(str(error), 1)[0].rstrip(". ")
    return "".join(one if one.isprintable() else " " for one in words[:_LONGEST])


def told_of_setup(error: SetupError) -> str:
    """What a log may say of a wrong set-up: the error's words, which say what to do, but a number for the server's."""
    cause = error.__cause__
    if isinstance(cause, ServerError):
        return str(error).replace(str(cause).rstrip("."), told(cause))
    return str(error) if cause is None else told(error)
