"""Logs: what processes write on standard error, for people or for programs that gather it."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

__all__ = ["PUBLICATION", "log_to_stderr"]

PUBLICATION = ("tenant", "source", "id")
"""What names the publication that a line is about, where it is about one (`extra`)."""

_VARIABLE = "DISTRIBUTARY_LOG"


def log_to_stderr(name: str) -> None:
    """Have what is worth knowing written on standard error, with the time and by whom.

    `DISTRIBUTARY_LOG` has words: with `json` each line is a JSON document, and with `debug` there
    is one for whatever becomes of each publication.
    """
    words = os.environ.get(_VARIABLE, "").split()
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter(f"%(asctime)s {name} %(levelname)s %(message)s")
    handler.setFormatter(_Json(name) if "json" in words else plain)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    if "debug" in words:
        # Ours alone: others have much to say that is nobody's business.
        logging.getLogger("distributary").setLevel(logging.DEBUG)


class _Json(logging.Formatter):
    """Writes each line as a JSON document."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of JSON, with what it says of a publication as fields."""
        told = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "by": self._name,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        told |= {one: getattr(record, one) for one in PUBLICATION if hasattr(record, one)}
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)
