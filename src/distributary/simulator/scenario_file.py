"""Scenario files: TOML, read with every complaint naming the field."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributary.arguments import checked
from distributary.broker.settings import (
    AdaptationSettings,
    ContentSettings,
    Settings,
    StreamSettings,
    check_method,
    settings_with,
)
from distributary.content import ContentSpace
from distributary.content.calibrated_graph import graph_for, graph_text
from distributary.content.divergence import DIVERGENCES
from distributary.content.documents import parse_document, place_of
from distributary.content.fields import described, no_such_name
from distributary.content.tables import read_table
from distributary.errors import BadInput, counted, quoted
from distributary.files import file_bytes, naming
from distributary.media.graphs import ALL_GRAPHS, GRAPHS, default_graph
from distributary.simulator.scenario import (
    REPEAT_S_MAX,
    SMALL_BROKERS_MAX,
    AdaptationTable,
    ContentTable,
    OverlayTable,
    Scenario,
    WorkloadTable,
)
from distributary.simulator.scenario_faults import read_faults

__all__ = ["read_scenario", "scenario_from"]

_BYTES_MAX = 2**20
_DOCUMENT_BYTES_MAX = 16 * 2**20
_KEYS = ("size", "overlay", "content", "workload", "adaptation", "fault", "settings", "space")
_NO_GRAPH = "none"
_MEGABYTE = 1e6


@checked
def read_scenario(path: Path | str) -> Scenario:
    """Return the scenario in a file, or raise `BadInput` naming the file and the field."""
    with naming(path):
        data = file_bytes(path, bytes_max=_BYTES_MAX)
        try:
            document = tomllib.loads(data.decode("utf-8"))
        except UnicodeDecodeError:
            raise BadInput("document", "is not text in UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise BadInput("document", f"is not TOML: {error}") from None
        except RecursionError:
            raise BadInput("document", "is nested too deeply") from None
        except ValueError:
            # Python reads no integer of more than a few thousand digits.
            raise BadInput("document", "has a number of thousands of digits") from None
        return scenario_from(document, Path(path))


@checked
def scenario_from(document: Mapping[str, Any], path: Path) -> Scenario:
    """Return the scenario in a document that was read from a file of this name."""
    for key in document:
        if key not in _KEYS:
            raise no_such_name(place_of("", key), key, _KEYS, "a table or field of a scenario")
    size = document.get("size")
    if size not in ("small", "large"):
        what = "is missing" if size is None else f"is {described(size)}"
        raise BadInput("size", what, hint='write size = "small" or size = "large"')
    overlay = _overlay(document.get("overlay", {}))
    content = read_table(ContentTable, document.get("content", {}), "content")
    check_method(content.method, "content.method")
    workload = read_table(WorkloadTable, document.get("workload", {}), "workload")
    adaptation = document.get("adaptation", {})
    read_table(AdaptationTable, adaptation, "adaptation")
    faults = read_faults(document.get("fault", []), overlay, workload)
    _check_overlay(overlay, size, path)
    _check_workload(workload)
    settings = _settings(document, overlay, content, adaptation, path)
    _check_content(content, settings)
    newer = None
    if content.newer_formats:
        graph = _graph(content, path, "newer_formats")
        newer = dataclasses.replace(settings, graph=graph)
    return Scenario(path.stem, path, size, settings, overlay, content, workload, faults, newer)


def _overlay(value: object) -> OverlayTable:
    """Return the table of brokers; there are as many as it says, or as it names places."""
    overlay = read_table(OverlayTable, value, "overlay")
    if not overlay.at:
        return overlay
    if overlay.file is None:
        raise BadInput("overlay.at", "needs overlay.file, which has the places that it names")
    if isinstance(value, Mapping) and "brokers" in value and overlay.brokers != len(overlay.at):
        raise BadInput(
            "overlay.brokers",
            f"is {overlay.brokers}, and overlay.at names {counted(len(overlay.at), 'place')}",
        )
    return dataclasses.replace(overlay, brokers=len(overlay.at))


def _check_overlay(overlay: OverlayTable, size: str, path: Path) -> None:
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
    if overlay.file is not None and not (path.parent / overlay.file).is_file():
        raise BadInput("overlay.file", f"{quoted(overlay.file)} is no file beside the scenario")


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
    per_tenant = 2 if workload.twins else 1
    if workload.twins and workload.publishers < 2:
        raise BadInput("workload.twins", "needs two publishers", hint="write publishers = 2")
    if workload.tenants > 1 and workload.publishers < per_tenant * workload.tenants:
        raise BadInput(
            "workload.publishers",
            f"is {workload.publishers}, and each of {workload.tenants} tenants needs {per_tenant}",
        )
    if workload.tenants > 1 and workload.objects:
        raise BadInput("workload.tenants", "means nothing for streams", hint="leave out objects")
    if workload.restarts and not workload.publishers:
        raise BadInput("workload.publishers", "is 0, and there are restarts")
    if workload.foreign and min(workload.tenants, workload.publishers) < 2:
        raise BadInput(
            "workload.foreign", "needs two tenants and publishers", hint="write tenants = 2"
        )
    if workload.away and workload.away_s[1] > workload.duration_s - workload.begin_s:
        raise BadInput(
            "workload.away_s",
            f"is up to {workload.away_s[1]:g} s, and clients are active for "
            f"{workload.duration_s - workload.begin_s:g} s",
            hint="everybody must be back in time",
        )
    end = f"is after the end at {workload.duration_s:g} s"
    if workload.storm_publications and workload.storm_at_s > workload.duration_s:
        raise BadInput("workload.storm_at_s", end)
    if workload.shift is not None and workload.shift.at_s > workload.duration_s:
        raise BadInput("workload.shift.at_s", end)


def _check_content(content: ContentTable, settings: Settings) -> None:
    retention_s = settings.content.retention_s
    if retention_s <= REPEAT_S_MAX:
        # A home forgot what it had accepted before the client, which had not heard so, said it
        # again: that was another publication then, and came twice to who had moved meanwhile.
        raise BadInput(
            "settings.content.retention_s",
            f"is {retention_s:g}, and clients repeat what is not answered after {REPEAT_S_MAX:g} s",
            hint="keep publications for longer than that",
        )
    most, published = settings.content.content_bytes_max, round(content.megabytes[1] * _MEGABYTE)
    if published > most and (content.graph != _NO_GRAPH or content.source is not None):
        raise BadInput(
            "content.megabytes",
            f"is up to {content.megabytes[1]:g}, and brokers take {most / _MEGABYTE:g} MB",
            hint="raise content_bytes_max in settings.content",
        )
    if content.formats and content.graph == _NO_GRAPH:
        raise BadInput("content.formats", "is given without a graph", hint="write graph beside it")
    if content.newer_formats and content.graph == _NO_GRAPH:
        raise BadInput("content.newer_formats", "is given without a graph", hint="write graph")
    if bool(content.newer_formats) != bool(content.newer_share):
        raise BadInput(
            "content.newer_share",
            f"is {content.newer_share:g} beside {counted(len(content.newer_formats), 'format')}",
            hint="write newer_formats and newer_share, or neither",
        )
    names, source = settings.graph_for(1_000_000).names, content.source
    if source is not None and content.graph != _NO_GRAPH and source not in names:
        raise no_such_name("content.source", source, names, "a format of the graph")


def _settings(
    document: Mapping[str, Any],
    overlay: OverlayTable,
    content: ContentTable,
    adaptation: Mapping[str, Any],
    path: Path,
) -> Settings:
    """Return what the brokers agree on: the scenario's tables, then `[settings]`."""
    conflate = {k: adaptation[k] for k in ("approach", "conflate") if k in adaptation}
    others = {k: v for k, v in adaptation.items() if k not in conflate}
    base = Settings(
        space=_space(document, path),
        graph=_graph(content, path),
        content=ContentSettings(
            tree=content.tree,
            method=content.method,
            alpha=content.alpha,
            beta=content.beta,
            delay_weight=content.delay_weight,
            load_growth=content.load_growth,
            link_mbps=overlay.link_mbps,
            compare=content.compare,
        ),
        streams=StreamSettings(**conflate),
        adaptation=AdaptationSettings(**others),
    )
    return settings_with(base, document.get("settings", {}))


def _space(document: Mapping[str, Any], path: Path) -> ContentSpace:
    """Return the content space: the default one, or a table of the scenario, or a file."""
    given = document.get("space")
    if given is None:
        return ContentSpace.default()
    if not isinstance(given, Mapping | str):
        raise BadInput("space", f"must be a table or the name of a file, not {described(given)}")
    try:
        if isinstance(given, Mapping):
            return ContentSpace.parse(given)
        file = path.parent / given
        with naming(file):
            return ContentSpace.parse(
                parse_document(file_bytes(file, bytes_max=_DOCUMENT_BYTES_MAX))
            )
    except BadInput as error:
        raise error.within("space") from None


def _graph(content: ContentTable, path: Path, chosen: str = "formats") -> str:
    """Return the calibrated adaptation graph as JSON, with the chosen formats only.

    Parameters
    ----------
    chosen
        The field of `[content]` that chooses them.
    """
    if content.graph == _NO_GRAPH:
        return Settings().graph
    if content.graph in (*GRAPHS, ALL_GRAPHS):
        document = default_graph(content.graph)
    else:
        file = path.parent / content.graph
        if not file.exists():
            known = " nor ".join((_NO_GRAPH, *GRAPHS, ALL_GRAPHS))
            raise BadInput(
                "content.graph",
                f"{quoted(content.graph)} is neither {known}, and no file beside the scenario",
            )
        try:
            with naming(file):
                read = parse_document(file_bytes(file, bytes_max=_DOCUMENT_BYTES_MAX))
                graph_for(read, 1_000_000)
        except BadInput as error:
            raise error.within("content.graph") from None
        assert isinstance(read, dict)
        document = read
    formats: Any = document["formats"]
    names = {entry["name"] for entry in formats}
    wanted: tuple[str, ...] = getattr(content, chosen)
    for index, name in enumerate(wanted):
        if name not in names:
            raise no_such_name(f"content.{chosen}[{index}]", name, names, "a format of the graph")
    return graph_text(document, wanted or None)
