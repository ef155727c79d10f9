"""Scenario files: TOML, read with every complaint naming the field."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributary.broker.settings import (
    AdaptationSettings,
    ContentSettings,
    Settings,
    StreamSettings,
)
from distributary.content import ContentSpace
from distributary.content.calibrated_graph import graph_for
from distributary.content.divergence import DIVERGENCES
from distributary.content.documents import parse_document
from distributary.content.fields import described, no_such_name
from distributary.errors import BadInput, quoted
from distributary.media.graphs import GRAPHS, default_graph
from distributary.placement import METHODS
from distributary.simulator.scenario import (
    SMALL_BROKERS_MAX,
    AdaptationTable,
    ContentTable,
    Fault,
    OverlayTable,
    Scenario,
    WorkloadTable,
)
from distributary.simulator.tables import read_table
from distributary.topology.files import file_bytes, naming

__all__ = ["read_scenario", "scenario_from"]

_BYTES_MAX = 2**20
_GRAPH_BYTES_MAX = 16 * 2**20
_FAULTS_MAX = 1000
_KEYS = ("size", "overlay", "content", "workload", "adaptation", "fault", "settings", "space")
_NO_GRAPH = "none"


def read_scenario(path: Path | str) -> Scenario:
    """Return the scenario in a file, or raise `BadInput` naming the file and the field."""
    with naming(path):
        data = file_bytes(path, bytes_max=_BYTES_MAX)
        try:
            document = tomllib.loads(data.decode("utf-8"))
        except UnicodeDecodeError:
            raise BadInput("document", "is not text in UTF-8") from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            reason = str(error) or "it is nested too deeply"
            raise BadInput("document", f"is not TOML: {reason}") from None
        return scenario_from(document, Path(path))


def scenario_from(document: Mapping[str, Any], path: Path) -> Scenario:
    """Return the scenario in a document that was read from a file of this name."""
    for key in document:
        if key not in _KEYS:
            raise no_such_name(key, key, _KEYS, "a table or field of a scenario")
    size = document.get("size")
    if size not in ("small", "large"):
        what = "is missing" if size is None else f"is {described(size)}"
        raise BadInput("size", what, hint='write size = "small" or size = "large"')
    overlay = read_table(OverlayTable, document.get("overlay", {}), "overlay")
    content = read_table(ContentTable, document.get("content", {}), "content")
    workload = read_table(WorkloadTable, document.get("workload", {}), "workload")
    adaptation = document.get("adaptation", {})
    read_table(AdaptationTable, adaptation, "adaptation")
    faults = _faults(document.get("fault", []), overlay)
    _check_overlay(overlay, size)
    _check_workload(workload)
    settings = _settings(document, content, adaptation, path)
    _check_content(content, settings)
    return Scenario(path.stem, path, size, settings, overlay, content, workload, faults)


def _faults(entries: object, overlay: OverlayTable) -> tuple[Fault, ...]:
    if not isinstance(entries, list):
        raise BadInput("fault", "must be a list of tables", hint="write [[fault]] above each")
    if len(entries) > _FAULTS_MAX:
        raise BadInput("fault", f"has {len(entries):,} entries; at most {_FAULTS_MAX:,} are read")
    faults = []
    for index, entry in enumerate(entries):
        place = f"fault[{index}]"
        fault = read_table(Fault, entry, place)
        if fault.kind is None:
            raise BadInput(f"{place}.kind", "is missing")
        if fault.until_s is not None and fault.until_s < fault.at_s:
            raise BadInput(f"{place}.until_s", f"is before at_s, which is {fault.at_s:g}")
        for k, broker in enumerate(fault.brokers):
            if broker >= overlay.brokers:
                raise BadInput(
                    f"{place}.brokers[{k}]",
                    f"is {broker}, and the last of them is {overlay.brokers - 1}",
                )
        if fault.kind == "mix" and fault.until_s is None:
            raise BadInput(
                f"{place}.until_s", "is missing", hint="a mix has a beginning and an end"
            )
        faults.append(fault)
    return tuple(faults)


def _check_overlay(overlay: OverlayTable, size: str) -> None:
    if size == "small" and overlay.brokers > SMALL_BROKERS_MAX:
        raise BadInput(
            "overlay.brokers",
            f"is {overlay.brokers}, and a small scenario has at most {SMALL_BROKERS_MAX}",
            hint='write size = "large"',
        )
    needs_file = overlay.topology in ("gml", "delays")
    if needs_file and overlay.file is None:
        raise BadInput("overlay.file", f"is missing, and the topology is {overlay.topology}")
    if not needs_file and overlay.file is not None:
        raise BadInput("overlay.file", f"is not for the topology {overlay.topology}")


def _check_workload(workload: WorkloadTable) -> None:
    for index, name in enumerate(workload.divergences):
        if name not in DIVERGENCES:
            raise no_such_name(f"workload.divergences[{index}]", name, DIVERGENCES, "a divergence")
    if not workload.divergences:
        raise BadInput("workload.divergences", "is empty")
    if workload.begin_s > workload.duration_s:
        raise BadInput("workload.begin_s", f"is after the end at {workload.duration_s:g} s")
    if (workload.publications or workload.storm_publications) and not workload.publishers:
        raise BadInput("workload.publishers", "is 0, and there are publications")


def _check_content(content: ContentTable, settings: Settings) -> None:
    if content.method not in METHODS:
        raise no_such_name("content.method", content.method, METHODS, "a method of placement")
    names = settings.graph_for(1_000_000).names
    for place, name in (("content.source", content.source),):
        if name is not None and content.graph != _NO_GRAPH and name not in names:
            raise no_such_name(place, name, names, "a format of the graph")


def _settings(
    document: Mapping[str, Any], content: ContentTable, adaptation: Mapping[str, Any], path: Path
) -> Settings:
    """Return what the brokers agree on: the scenario's tables, then `[settings]`."""
    conflate = {k: adaptation[k] for k in ("approach", "conflate") if k in adaptation}
    others = {k: v for k, v in adaptation.items() if k not in conflate}
    base = Settings(
        space=_space(document),
        graph=_graph(content, path),
        content=ContentSettings(
            tree=content.tree,
            method=content.method,
            alpha=content.alpha,
            beta=content.beta,
            load_growth=content.load_growth,
            compare=content.compare,
        ),
        streams=StreamSettings(**conflate),
        adaptation=AdaptationSettings(**others),
    )
    given = document.get("settings", {})
    if not isinstance(given, Mapping):
        raise BadInput("settings", f"must be a table, not {described(given)}")
    groups = {
        field.name: getattr(base, field.name)
        for field in dataclasses.fields(Settings)
        if dataclasses.is_dataclass(getattr(base, field.name)) and field.name != "space"
    }
    changed = {}
    for name, table in given.items():
        place = f"settings.{name}"
        if name not in groups:
            raise no_such_name(place, name, groups, "a group of settings")
        group = groups[name]
        read_table(type(group), table, place)
        floats = {f.name for f in dataclasses.fields(group) if f.type in ("float", float)}
        values = {k: float(v) if k in floats else v for k, v in table.items()}
        changed[name] = dataclasses.replace(group, **values)
    return dataclasses.replace(base, **changed)


def _space(document: Mapping[str, Any]) -> ContentSpace:
    """Return the content space, the default one unless the scenario has another."""
    if "space" not in document:
        return ContentSpace.default()
    try:
        return ContentSpace.parse(document["space"])
    except BadInput as error:
        raise error.within("space") from None


def _graph(content: ContentTable, path: Path) -> str:
    """Return the calibrated adaptation graph as JSON, with the chosen formats only."""
    if content.graph == _NO_GRAPH:
        return Settings().graph
    if content.graph in GRAPHS:
        document = default_graph(content.graph)
    else:
        file = path.parent / content.graph
        if not file.exists():
            raise BadInput(
                "content.graph",
                f"{quoted(content.graph)} is neither {_NO_GRAPH} nor {' nor '.join(GRAPHS)}, "
                "and no file beside the scenario",
            )
        with naming(file):
            read = parse_document(file_bytes(file, bytes_max=_GRAPH_BYTES_MAX))
            graph_for(read, 1_000_000)
        assert isinstance(read, dict)
        document = read
    formats: Any = document["formats"]
    conversions: Any = document["conversions"]
    names = {entry["name"] for entry in formats}
    for index, name in enumerate(content.formats):
        if name not in names:
            raise no_such_name(f"content.formats[{index}]", name, names, "a format of the graph")
    kept = set(content.formats) or names
    return json.dumps(
        {
            "formats": [
                {"name": entry["name"], "size": entry["size"]}
                for entry in formats
                if entry["name"] in kept
            ],
            "conversions": [
                {"from": entry["from"], "to": entry["to"], "cost": entry["cost"]}
                for entry in conversions
                if entry["from"] in kept and entry["to"] in kept
            ],
        }
    )
