"""What can be known about a chain of jobs before Spark is started, which takes seconds.

A file that is not there, a table that no job before makes, a method that does not exist or a name
that is no user would otherwise end the chain after everything before it has been done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distributary.arguments import check_choice
from distributary.content.content_space import ContentSpace
from distributary.content.documents import read_document
from distributary.errors import BadInput, quoted
from distributary.methods import FIDELITY, PLACEMENT, WIRING
from distributary.pipeline.days import parse_days
from distributary.pipeline.graph import calibration
from distributary.pipeline.job_tables import READS, WRITES
from distributary.pipeline.jobs import ingest
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import found_files
from distributary.pipeline.sources.reading import split_rows
from distributary.pipeline.sources.source_rows import layout_of
from distributary.pipeline.sources.splits import SplitPlan, planned_splits

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.config import Step
    from distributary.pipeline.store import Store

__all__ = ["check_chain"]

_METHODS = {"plans": PLACEMENT, "wire": WIRING, "tree": FIDELITY}
# Files of so many bytes together are read here for the names in them; more takes longer than Spark.
_NAMES_BYTES_MAX = 32 * 2**20


def check_chain(store: Store, steps: Sequence[Step]) -> None:
    """Raise `BadInput` for what would end a chain of jobs on a folder, naming the job."""
    made: set[str] = set()
    plans: dict[str, SplitPlan | None] = {}
    for step in steps:
        try:
            _check_options(step)
            if step.job == "ingest":
                name = str(step.options["table"])
                plan = _check_files(step)
                # What several files and an older table come to is not worked out here.
                plans[name] = None if name in plans or step.options.get("add") else plan
                made.add(name)
            for name in READS.get(step.job, ()):
                if name not in made:
                    _check_table(store, name)
        except BadInput as error:
            raise error.within(f"[{step.job}]") from None
        made.update(WRITES.get(step.job, ()))
    _check_names(store, steps, plans)


def _check_table(store: Store, name: str) -> None:
    if store.has(name):
        store.check(name)
        return
    makers = [job for job, names in WRITES.items() if name in names and job != "sample"]
    raise BadInput(
        store.path(name),
        "there is no such table, and no job of the chain makes it",
        hint=f"add [{makers[0]}]" if makers else f"add [[ingest]] with table = {name!r}",
    )


def _check_options(step: Step) -> None:
    given: dict[str, Any] = dict(step.options)
    if step.job == "sample":
        given.pop("seed", None)
        SampleSizes(**given)
    if step.job in _METHODS and "method" in given:
        check_choice("method", given["method"], _METHODS[step.job])
    parse_days(given.get("since"), given.get("until"))
    if "graph" in given:
        calibration(given["graph"])
    if given.get("space") not in (None, "types", "default"):
        read_document(given["space"], ContentSpace.parse)


def _check_files(step: Step) -> SplitPlan:
    name, files = str(step.options["table"]), step.options["files"]
    assert isinstance(files, list)
    rule = {key: step.options[key] for key in ("publisher", "any_publisher") if key in step.options}
    ingest.check(name, files, **rule)  # type: ignore[arg-type]  # the configuration is checked
    return planned_splits(found_files(files), layout_of(table_schema(name)))


def _check_names(
    store: Store, steps: Sequence[Step], plans: Mapping[str, SplitPlan | None]
) -> None:
    """Look for names that the last jobs would stumble over, in tables and files that are small."""
    options = {step.job: step.options for step in steps}
    if "sample" in options:
        return
    if "wire" in options:
        users = _names(store, "users", "user", plans)
        wanted = _names(store, "subscriptions", "user", plans)
        unknown = sorted(wanted - users) if users is not None and wanted is not None else []
        if unknown:
            others = f" (and {len(unknown) - 1:,} more like it)" if len(unknown) > 1 else ""
            raise BadInput(
                "[wire]: subscriptions",
                f"user {quoted(unknown[0])} is not in users{others}",
                hint="give users a row for everybody who subscribes",
            )
    source = options.get("tree", {}).get("source")
    brokers = _names(store, "overlay", "broker", plans) if source is not None else None
    if brokers is not None and source not in brokers:
        raise BadInput(
            "[tree] source", f"{quoted(source)} is not a broker of overlay", hint="names are exact"
        )


def _names(
    store: Store, table: str, column: str, plans: Mapping[str, SplitPlan | None]
) -> set[str] | None:
    """Return the names in a column as the chain will see them; None if that takes too long."""
    if table not in plans:
        return set(store.read(table, [column])[column].to_pylist()) if store.has(table) else None
    plan = plans[table]
    if plan is None:
        return None
    splits = plan.splits
    if sum(split.end - split.start for split in splits) > _NAMES_BYTES_MAX:
        return None
    layout = layout_of(table_schema(table))
    found: set[str] = set()
    for split in splits:
        for batch in split_rows(split, layout, origins=False, refuse_files=True):
            found.update(_good(batch)[column].to_pylist())
    return found


def _good(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return batch.filter(pc.is_null(batch.column("reason")))
