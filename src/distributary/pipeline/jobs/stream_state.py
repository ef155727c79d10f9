"""What a stream remembers between batches, versioned by batch, beside Spark's checkpoint.

    CHECKPOINT/spark          Spark's own: which files belong to which batch, which are done
    CHECKPOINT/stream.json    how the stream was begun
    CHECKPOINT/batch=N.json   watermarks and counts after batch N, and which versions of the
                              tables below were current then
    CHECKPOINT/NAME.batch=N   tables: rates, keys, volumes, reported

Batch N reads what batch N - 1 left and writes its own; `batch=N.json` comes last, and then
Spark notes that the batch is done. A process that is killed in between does batch N again,
from the same files and the same state, and puts the same results in the same places.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted
from distributary.pipeline.folder import Folder, open_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchState", "Checkpoint"]

_BEGUN = "stream.json"
_DRAFT = f".{_BEGUN}"
_NOTE = re.compile(r"batch=([0-9]+)\.json")
_TABLE = re.compile(r"([a-z]+)\.batch=([0-9]+)")


@dataclass(frozen=True)
class BatchState:
    """What is known after a batch.

    Attributes
    ----------
    batch
        Its number; -1 before the first.
    watermarks
        By table, in microseconds since 1970; missing until a time was seen.
    versions
        By name: the batch that last wrote a table of the state.
    others
        The table of files that are in no folder of a table's name.
    """

    batch: int = -1
    watermarks: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    others: str | None = None

    def following(self) -> BatchState:
        """Return the same, as the beginning of the next batch."""
        return replace(self, batch=self.batch + 1)


class Checkpoint:
    """The folder in which a stream keeps its state."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._folder: Folder = open_folder(spark, location)

    @property
    def spark_path(self) -> str:
        """Where Spark keeps its own checkpoint."""
        return self._folder.path("spark")

    def is_begun(self, settings: Mapping[str, object]) -> bool:
        """Whether a stream with these settings has begun here.

        Raises `BadInput` when one was begun in another way, which what it remembers does not
        fit.
        """
        text = self._folder.read_text(_BEGUN)
        if text is None:
            if set(self._folder.names()) - {_DRAFT}:
                raise BadInput(
                    self._folder.path(""),
                    "is not empty, and not the checkpoint of a stream",
                    hint="give an empty folder, or one that does not exist yet",
                )
            return False
        known = json.loads(text)
        for name, value in settings.items():
            if known.get(name) != value:
                raise BadInput(
                    self._folder.path(""),
                    f"belongs to a stream with {name} {quoted(known.get(name))}, not "
                    f"{quoted(value)}",
                    hint="go on with that, or give another --checkpoint",
                )
        return True

    @property
    def stream(self) -> str:
        """What the stream is called in the logs of tables, whose batches are in them once."""
        return str(json.loads(self._folder.read_text(_BEGUN) or "{}")["stream"])

    def begin(self, settings: Mapping[str, object]) -> None:
        """Note how the stream is begun."""
        settings = {**settings, "stream": secrets.token_hex(8)}
        self._folder.make("")
        self._folder.write_text(_DRAFT, json.dumps(settings, indent=1) + "\n")
        self._folder.rename(_DRAFT, _BEGUN)

    def after(self, batch: int) -> BatchState:
        """Return what was known after a batch."""
        if batch < 0:
            return BatchState()
        text = self._folder.read_text(f"batch={batch}.json")
        if text is None:
            raise BadInput(
                self._folder.path(f"batch={batch}.json"),
                "is missing, so that the stream cannot go on",
                hint="give another --checkpoint, and -o another folder",
            )
        return BatchState(**json.loads(text))

    def latest(self) -> BatchState:
        """Return what is known after the last batch."""
        found = [_NOTE.fullmatch(name) for name in self._folder.names()]
        return self.after(max((int(item[1]) for item in found if item), default=-1))

    def read(self, state: BatchState, name: str, columns: str) -> DataFrame | None:
        """Return a table of the state; None when there is none yet."""
        if name not in state.versions:
            return None
        path = self._folder.path(f"{name}.batch={state.versions[name]}")
        return self._spark.read.schema(columns).parquet(path)

    def write(self, state: BatchState, name: str, frame: DataFrame) -> BatchState:
        """Write a table of the state for the batch of `state`, and return the new state."""
        path = self._folder.path(f"{name}.batch={state.batch}")
        frame.write.mode("overwrite").parquet(path)
        return replace(state, versions={**state.versions, name: state.batch})

    def keep(self, state: BatchState, before: BatchState) -> None:
        """Make a state the one that the next batch begins with.

        What neither it nor the one before needs is removed. The one before stays: should
        Spark not come to note that the batch is done, it is done again.
        """
        self._folder.write_text(f"batch={state.batch}.json", json.dumps(asdict(state)) + "\n")
        kept = {(name, batch) for item in (state, before) for name, batch in item.versions.items()}
        for name in self._folder.names():
            note, version = _NOTE.fullmatch(name), _TABLE.fullmatch(name)
            if (note and int(note[1]) < before.batch) or (
                version and (version[1], int(version[2])) not in kept
            ):
                self._folder.remove(name)
