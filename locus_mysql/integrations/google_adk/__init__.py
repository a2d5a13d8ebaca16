"""The session service and the memory service of Google ADK on MySQL.

Converts ADK's sessions, events and memories, and leaves storage to `families/transcripts` and `families/memories`.
Begin with `sessions` and `memories`, the public classes with their operations; `services` creates both from a URI, for
ADK's command line.
"""

from ...extras import need

need("google.adk", "Google ADK", "adk")

from google.adk.errors import StaleSessionError

from .memories import AdkMemoryService
from .services import memory_service, register_services, session_service
from .sessions import AdkSessionService

__all__ = [
    "AdkMemoryService",
    "AdkSessionService",
    "StaleSessionError",
    "memory_service",
    "register_services",
    "session_service",
]
