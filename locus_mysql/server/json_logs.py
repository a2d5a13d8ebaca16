"""`JsonFormatter`: log records as lines of JSON, for programs that collect logs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from .requests import FIELDS


class JsonFormatter(logging.Formatter):
    """Formats a record as one line: time in UTC, level, logger, message, and the values of a request by name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        fields = getattr(record, FIELDS, {})
        content |= {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=False)
