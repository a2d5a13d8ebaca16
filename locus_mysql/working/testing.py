"""One suite of checks for every storage of working memory: see `families.working.testing`."""

from ..families.working.testing import CHECKS, Check, ContractBroken

__all__ = ["CHECKS", "Check", "ContractBroken"]
