"""Configuration: what one broker process is told, from a TOML file and the environment.

Every setting has the same name in both. `user` of the table `[nats]` is `DISTRIBUTARY_NATS_USER` in
the environment, which has the last word. Secrets are in files of their own or in the environment,
never in the configuration, which people copy into tickets.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

from distributary.broker.host import Neighbour, Surroundings
from distributary.broker.settings import Settings, settings_with
from distributary.content.calibrated_graph import graph_for, graph_text
from distributary.content.documents import parse_document
from distributary.content.fields import no_such_name
from distributary.content.tables import bounded, read_table
from distributary.errors import BadInput, quoted
from distributary.files import file_bytes, naming
from distributary.media.graphs import ALL_GRAPHS, GRAPHS, default_graph, joined_graphs
from distributary.media.limits import Limits
from distributary.network.connection import Server
from distributary.network.subjects import check_name
from distributary.topology.identifiers import digits_of

__all__ = [
    "TABLES",
    "BrokerTable",
    "Config",
    "ConvertersTable",
    "NatsTable",
    "read_config",
    "read_tables",
    "server_of",
]

_BYTES_MAX = 2**20
_GRAPH_BYTES_MAX = 16 * 2**20
_SECRET_BYTES_MAX = 4096
_ENVIRONMENT = "DISTRIBUTARY"
_NO_GRAPH, _USUAL_GRAPHS = "none", "default"
# What a broker that nobody has measured yet counts as.
_DELAY_NS = 1_000_000
_MEBIBYTE = 2**20


@dataclass(frozen=True)
class BrokerTable:
    """`[broker]`: who it is.

    Attributes
    ----------
    identity
        Its identifier: hexadecimal digits, as many for all brokers of an overlay.
    overlay
        Which overlay it is part of; several may share a NATS server.
    state
        The folder of its journal and content; relative to the configuration.
    members
        The brokers that start the overlay together, itself among them.
    contact
        A member by which it joins, for a broker that comes later.
    node_cost
        What a unit of conversion costs here, as a factor.
    room_mib
        With less room on the disk than this it takes no publications.
    graph
        Which conversions there are: `default` (maps and videos), `map`, `video`, `all` (also
        pages, GIF, Ogg and stills), `none`, or a file made by `distributary calibrate`.
    """

    identity: str
    overlay: str = "main"
    state: str = "."
    members: tuple[str, ...] = ()
    contact: str | None = None
    node_cost: float = bounded(1.0, 1e-6, 1e6)
    room_mib: int = bounded(64, 1, 10**9)
    graph: str = _USUAL_GRAPHS


@dataclass(frozen=True)
class NatsTable:
    """`[nats]`: how to reach the NATS server.

    Attributes
    ----------
    urls
        The address of the server, or those of several servers of a cluster.
    user
        The user as which it logs in, if the server asks.
    password_file
        A file that contains the password of `user` alone. In the environment,
        `DISTRIBUTARY_NATS_PASSWORD` is the password itself.
    authority
        A PEM file of the authorities that may vouch for the server; with none, those that the
        system trusts.
    certificate
        A PEM file with its own certificate, if the server asks for one.
    key
        A PEM file with the key of `certificate`, unless the key is in that file too.
    clear_text
        Whether another machine may be spoken to without TLS.
    """

    urls: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    user: str | None = None
    password_file: str | None = None
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    clear_text: bool = False


@dataclass(frozen=True)
class ConvertersTable:
    """`[converters]`: who converts, and within which limits.

    Attributes
    ----------
    workers
        How many conversions may run at once.
    seconds
        How long one of them may take; then its worker is killed.
    memory_mib
        How much memory one of them may take. How large content may be is `content_bytes_max` of
        `[settings.content]`.
    """

    workers: int = bounded(1, 1, 1024)
    seconds: float = bounded(60.0, 0.1, 1e6)
    memory_mib: int = bounded(1024, 16, 10**6)

    def limits(self, content_bytes_max: int) -> Limits:
        """Return them as the pool takes them."""
        return Limits(
            seconds=self.seconds,
            memory_bytes=self.memory_mib * _MEBIBYTE,
            input_bytes=content_bytes_max,
            output_bytes=content_bytes_max,
        )


TABLES: Mapping[str, type] = {
    "broker": BrokerTable,
    "nats": NatsTable,
    "converters": ConvertersTable,
}
"""What a configuration consists of, besides `[settings]`."""


@dataclass(frozen=True)
class Config:
    """What one broker process is told.

    Attributes
    ----------
    folder
        Where its journal and content are.
    server
        Where NATS is, with the password.
    settings
        What all brokers of the overlay agree on.
    """

    broker: BrokerTable
    converters: ConvertersTable
    folder: Path
    server: Server
    settings: Settings = field(repr=False)

    def surroundings(self) -> Surroundings:
        """Return what the broker is told of the others."""
        broker = self.broker
        others = {*broker.members, *([broker.contact] if broker.contact else [])}
        return Surroundings(
            tuple(Neighbour(one, _DELAY_NS) for one in sorted(others - {broker.identity})),
            members=tuple(sorted(broker.members)),
            contact=broker.contact,
            node_cost=broker.node_cost,
        )


def read_config(path: Path | str, environment: Mapping[str, str]) -> Config:
    """Return the configuration in a file, or raise `BadInput` naming the file and the field."""
    path = Path(path)
    tables, folder = read_tables(path, TABLES, environment, more=("settings",))
    with naming(path):
        broker = tables["broker"]
        _check_broker(broker)
        base = Settings(graph=_graph(broker.graph, folder))
        return Config(
            broker,
            tables["converters"],
            folder / broker.state,
            server_of(tables["nats"], environment, folder),
            settings_with(base, tables["settings"]),
        )


def read_tables(
    path: Path,
    tables: Mapping[str, type],
    environment: Mapping[str, str],
    *,
    more: tuple[str, ...] = (),
) -> tuple[dict[str, Any], Path]:
    """Return the tables of a configuration by name, and the folder that it is in.

    Parameters
    ----------
    more
        Other tables that may be there, which are returned as they are.
    """
    with naming(path):
        data = file_bytes(path, bytes_max=_BYTES_MAX)
        try:
            document = tomllib.loads(data.decode("utf-8"))
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            raise BadInput("document", f"is not TOML: {error}") from None
        known = (*tables, *more)
        for name in document:
            if name not in known:
                raise no_such_name(name, name, known, "a table of a configuration")
        if isinstance(document.get("nats"), Mapping) and "password" in document["nats"]:
            raise BadInput(
                "nats.password",
                "does not belong into a configuration",
                hint=f"name a file by password_file, or set {_ENVIRONMENT}_NATS_PASSWORD",
            )
        found: dict[str, Any] = {name: document.get(name, {}) for name in more}
        for name, cls in tables.items():
            given = document.get(name, {})
            if isinstance(given, Mapping):
                given = {**given, **_from_environment(name, cls, environment)}
            found[name] = read_table(cls, given, name)
    return found, path.absolute().parent


def _from_environment(name: str, cls: type, environment: Mapping[str, str]) -> dict[str, object]:
    """Return what the environment says of a table, as TOML would have it."""
    hints = get_type_hints(cls)
    found: dict[str, object] = {}
    for one in dataclasses.fields(cls):
        variable = f"{_ENVIRONMENT}_{name}_{one.name}".upper()
        text = environment.get(variable)
        if text is None:
            continue
        kinds = get_args(hints[one.name]) or (hints[one.name],)
        if hints[one.name] == tuple[str, ...]:
            found[one.name] = [part.strip() for part in text.split(",")]
        elif str in kinds:
            found[one.name] = text
        else:
            try:
                found[one.name] = json.loads(text)
            except ValueError:
                raise BadInput(variable, f"cannot be {quoted(text)}") from None
    return found


def _check_broker(broker: BrokerTable) -> None:
    check_name("broker.overlay", broker.overlay)
    digits = len(broker.identity)
    everybody = [broker.identity, *broker.members, *([broker.contact] if broker.contact else [])]
    try:
        digits_of(everybody, digits=digits)
    except BadInput as error:
        raise error.within("broker") from None
    if broker.members and broker.identity not in broker.members:
        raise BadInput("broker.members", f"does not have {quoted(broker.identity)} itself")


def server_of(nats: NatsTable, environment: Mapping[str, str], folder: Path) -> Server:
    """Return where NATS is, with the password, or raise `BadInput`."""
    if not nats.urls:
        raise BadInput("nats.urls", "is empty")
    for place, url in enumerate(nats.urls):
        try:
            parts = urlsplit(url)
            local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        except ValueError as error:
            raise BadInput(f"nats.urls[{place}]", f"is no address: {error}") from None
        if parts.scheme not in ("nats", "tls") or not parts.hostname:
            raise BadInput(
                f"nats.urls[{place}]", f"is {quoted(url)}", hint="write nats://HOST:PORT"
            )
        if parts.username or parts.password:
            raise BadInput(f"nats.urls[{place}]", "has a password in it", hint="use password_file")
        secure = parts.scheme == "tls" or nats.authority is not None
        if not (local or secure or nats.clear_text):
            raise BadInput(
                f"nats.urls[{place}]",
                f"{quoted(url)} is another machine, and would be spoken to in clear text",
                hint="write tls:// or authority, or clear_text = true if you must",
            )
    password = environment.get(f"{_ENVIRONMENT}_NATS_PASSWORD", "")
    if nats.password_file is not None and not password:
        file = folder / nats.password_file
        with naming(file):
            password = file_bytes(file, bytes_max=_SECRET_BYTES_MAX).decode().strip()

    def named(name: str | None) -> Path | None:
        return None if name is None else folder / name

    return Server(
        nats.urls,
        nats.user or "",
        password,
        named(nats.authority),
        named(nats.certificate),
        named(nats.key),
    )


def _graph(name: str, folder: Path) -> str:
    """Return the calibrated adaptation graph as JSON."""
    if name == _NO_GRAPH:
        return Settings().graph
    document: Any
    if name == _USUAL_GRAPHS:
        document = joined_graphs()
    elif name in (*GRAPHS, ALL_GRAPHS):
        document = default_graph(name)
    else:
        file = folder / name
        with naming(file):
            document = parse_document(file_bytes(file, bytes_max=_GRAPH_BYTES_MAX))
            graph_for(document, _MEBIBYTE)
    return graph_text(document)
