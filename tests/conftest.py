"""Settings of all tests."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from .thoroughness import FULL

# In the background or under nohup, pytest inherits these signals as ignored, and all child processes would, too. With a
# handler that does nothing, they are still ignored here, but child processes start with the default action.
for signum in (signal.SIGINT, signal.SIGHUP):
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signum) is signal.SIG_IGN:
        signal.signal(signum, lambda *_: None)

# The duration of an example depends on the machine's other load, so examples have no deadline. Each run draws
# different examples, so a short run draws few.
settings.register_profile(
    "any machine", max_examples=200 if FULL else 50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# For random runs of many operations against a server: ``@settings(settings.get_profile("server"))``. A short run has
# the same examples every time, so that its result is reproducible. A full run draws different ones, and takes minutes
# to shrink a failing one.
settings.register_profile(
    "server",
    max_examples=500 if FULL else 30,
    derandomize=not FULL,
    phases=[*([Phase.reuse] if FULL else []), Phase.generate, *([Phase.shrink] if FULL else [])],
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Restore the logging settings that a command in this process, such as ``serve``, changes."""
    loggers = [logging.getLogger(name) for name in (None, "locus_mysql", "uvicorn")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, level, handlers in before:
        if logger.level != level:
            logger.setLevel(level)
        for handler in [one for one in logger.handlers if type(one) is logging.StreamHandler and one not in handlers]:
            logger.removeHandler(handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, which takes 0.8 s of the 6 s that all integration tests need.

    Imported objects are excluded from it for good: a full collection of them takes 0.2 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
