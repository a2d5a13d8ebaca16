"""Settings of all tests."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

from .thoroughness import FULL

# How long an example takes tells of the machine, which may have other work.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# For random runs of many operations against a server: ``@settings(settings.get_profile("server"))``.
settings.register_profile(
    "server",
    max_examples=500 if FULL else 30,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def pytest_collection_finish() -> None:
    """Let garbage collections look at what tests make only: a full one takes 0.2 s for all that is imported."""
    gc.collect()
    gc.freeze()
