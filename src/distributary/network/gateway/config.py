"""Configuration of a gateway, from a TOML file and the environment, as that of a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distributary.broker.settings import ContentSettings
from distributary.content.tables import bounded
from distributary.errors import BadInput, quoted
from distributary.files import file_bytes, naming
from distributary.network.config import NatsTable, read_tables, server_of
from distributary.network.connection import Server
from distributary.network.gateway.limits import LimitsTable
from distributary.network.subjects import check_name

__all__ = ["GatewayConfig", "GatewayTable", "read_gateway_config"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TOKEN_BYTES_MAX = 4_096
# Only its hash is kept, and quick to compute: it must not be one that somebody guesses.
_TOKEN_CHARACTERS_MIN = 32


@dataclass(frozen=True)
class GatewayTable:
    """`[gateway]`: who it is, and where it listens.

    Attributes
    ----------
    brokers
        The brokers that it may ask, and where clients may be at home.
    name
        The name under which NATS lets it in; several gateways may share one.
    overlay
        Which overlay it speaks for.
    host
        The address at which it listens.
    port
        The TCP port at which it listens.
    state
        The folder of bodies of requests while they come; relative to the configuration.
    content_bytes_max
        How large content may be; the same as at brokers.
    acknowledged_s
        After how long a written server-sent event counts as acknowledged.
    publisher_idle_s
        How long a connection to a broker is kept for a token that publishes nothing.
    hosts
        Further host names of the gateway, with their port unless it is that of the scheme.
    origins
        Origins of other pages that may use it, as in `https://pages.example`; none, unless given.
    certificate
        A PEM file with its certificate; with one, it speaks TLS.
    key
        A PEM file with the key of `certificate`, unless the key is in that file too.
    clear_text
        Whether other machines may speak to it without TLS, as when a proxy has that.
    token_file
        A file with a token that is to permit everything, from which all others come.
    """

    brokers: tuple[str, ...] = ()
    name: str = "gateway"
    overlay: str = "main"
    host: str = "127.0.0.1"
    port: int = bounded(8480, 1, 65_535)
    state: str = "."
    content_bytes_max: int = bounded(ContentSettings().content_bytes_max, 1, 4 * 2**30)
    acknowledged_s: float = bounded(300.0, 0.1, 86_400.0)
    publisher_idle_s: float = bounded(900.0, 0.1, 86_400.0)
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    clear_text: bool = False
    token_file: str | None = None


@dataclass(frozen=True)
class GatewayConfig:
    """What one gateway process is told.

    Attributes
    ----------
    folder
        Where bodies of requests are while they come.
    server
        Where NATS is, with the password.
    certificate, key
        Files for TLS.
    token
        One that is to permit everything.
    """

    gateway: GatewayTable
    limits: LimitsTable
    folder: Path
    server: Server
    certificate: Path | None = None
    key: Path | None = None
    token: str | None = field(default=None, repr=False)


def read_gateway_config(path: Path, environment: Mapping[str, str]) -> GatewayConfig:
    """Return the configuration in a file, or raise `BadInput` naming the file and the field."""
    kinds = {"gateway": GatewayTable, "nats": NatsTable, "limits": LimitsTable}
    tables, folder = read_tables(path, kinds, environment)
    gateway: GatewayTable = tables["gateway"]
    with naming(path):
        check_name("gateway.overlay", gateway.overlay)
        check_name("gateway.name", gateway.name)
        if not gateway.brokers:
            raise BadInput("gateway.brokers", "is empty", hint="name some, or all")
        _check_clear_text(gateway)
        server = server_of(tables["nats"], environment, folder)
    return GatewayConfig(
        gateway,
        tables["limits"],
        folder / gateway.state,
        server,
        None if gateway.certificate is None else folder / gateway.certificate,
        None if gateway.key is None else folder / gateway.key,
        None if gateway.token_file is None else _token(folder / gateway.token_file),
    )


def _check_clear_text(gateway: GatewayTable) -> None:
    """Refuse to have tokens come in clear text from other machines, unless that is wanted."""
    if gateway.host in _LOOPBACK or gateway.certificate is not None or gateway.clear_text:
        return
    raise BadInput(
        "gateway.host",
        f"others would speak to {quoted(gateway.host)} in clear text",
        hint="give certificate and key, or clear_text = true behind a proxy that has TLS",
    )


def _token(path: Path) -> str:
    with naming(path):
        text = file_bytes(path, bytes_max=_TOKEN_BYTES_MAX).decode("ascii", "replace").strip()
        if len(text) < _TOKEN_CHARACTERS_MIN or not text.isprintable() or " " in text:
            raise BadInput(
                "token",
                f"must be one word of at least {_TOKEN_CHARACTERS_MIN} characters",
                hint="as from: openssl rand -hex 32",
            )
        return text
