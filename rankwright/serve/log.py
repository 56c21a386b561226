"""Logs: one JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

logger = logging.getLogger("rankwright.serve")


def tell(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line about ``event``."""
    logger.log(level, event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to_standard_error() -> None:
    """Send our lines, and what uvicorn warns of, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("rankwright.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        own = logging.getLogger(name)
        own.handlers, own.propagate = [handler], False
        own.setLevel(level)
