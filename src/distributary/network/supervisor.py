"""The supervisor: a whole overlay on one machine, with its NATS server.

It starts everything, starts again what dies, and stops what it has started. All that must
survive is in one folder; passwords are new at every start.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from distributary.errors import BadInput, DistributaryError
from distributary.files import naming, replacing
from distributary.network.buckets import make_buckets
from distributary.network.children import Children
from distributary.network.config import read_config
from distributary.network.connection import Server
from distributary.network.gateway.tokens import new_secret
from distributary.network.journal import check_path
from distributary.network.logs import log_to_stderr
from distributary.network.process import STOPPED, run_broker
from distributary.network.rehearsal import rehearse
from distributary.network.server import (
    free_port,
    is_listening,
    listening_at,
    server_config,
    server_program,
    users_of,
)
from distributary.network.snapshot import JOURNAL, take_snapshot
from distributary.network.subjects import Subjects
from distributary.topology.identifiers import random_identifiers

if TYPE_CHECKING:
    from distributary.network.gateway.pages import PageRoutes

__all__ = [
    "GATEWAY",
    "OPERATOR",
    "SNAPSHOT",
    "Operator",
    "OverlayRecord",
    "forget",
    "locked",
    "read_operator",
    "read_overlay_record",
    "supervise",
    "write_private",
]

GATEWAY = "gateway"
OPERATOR = "operator"
SNAPSHOT = "snapshot"
"""The folder in that of the state to which everything is copied when SIGUSR1 comes."""

_SERVER = "nats"
_BUCKETS = "buckets"
_BESIDE = "demo"
_STARTS_S = 60.0
_STOPS_S = 8.0
_LOOK_S = 3600.0
_SERVER_LOOK_S = 0.01
_OURS = ("brokers", "gateway", "nats", "logs", "overlay.json", "operator.json", SNAPSHOT)


class OverlayRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What is remembered of an overlay from one start to the next.

    Attributes
    ----------
    brokers
        Everybody's identifier; those who founded it first.
    founders
        How many of them did.
    port, gateway_port
        Where the NATS server and the gateway were; 0 before they were anywhere.
    """

    overlay: str
    brokers: list[str]
    founders: int
    port: int = 0
    gateway_port: int = 0


class Operator(msgspec.Struct, forbid_unknown_fields=True):
    """How to ask a running overlay how it is.

    Attributes
    ----------
    process
        Of the supervisor.
    gateway, token
        Where the gateway is, and what it lets one do everything by.
    """

    overlay: str
    brokers: list[str]
    url: str
    user: str
    password: str
    process: int
    gateway: str = ""
    token: str = ""


@dataclass(frozen=True)
class _Places:
    state: Path

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def server_config(self) -> Path:
        return self.state / "nats" / "nats.conf"

    @property
    def store(self) -> Path:
        return self.state / "nats" / "jetstream"

    @property
    def overlay(self) -> Path:
        return self.state / "overlay.json"

    @property
    def operator(self) -> Path:
        return self.state / "operator.json"

    @property
    def gateway(self) -> Path:
        return self.state / "gateway"

    def broker(self, name: str) -> Path:
        return self.state / "brokers" / name


def supervise(
    state: Path,
    *,
    brokers: int,
    port: int,
    fresh: bool,
    ready: Callable[[dict[str, object]], None],
    say: Callable[[str], None],
    port_given: bool = False,
    pages: Callable[[], PageRoutes] | None = None,
    settings: str = "",
    beside: Callable[[Path], int] | None = None,
) -> None:
    """Run an overlay until somebody says stop.

    Parameters
    ----------
    state
        The folder of all that survives.
    brokers
        How many, at least; there are as many as there were before.
    port
        The gateway's, if it is free; the NATS server has the next one. 0 is any that is free.
    fresh
        Whether to forget what was there.
    ready
        Called with what there is when everything is ready.
    say
        Called with a sentence when something happens that nobody has asked for.
    port_given
        Whether an overlay that had another port before is to have this one.
    pages
        Returns what the gateway serves to people, in its process.
    settings
        Tables `[settings]` of every broker, as TOML.
    beside
        Called with the folder of the state when everything is ready, in a process of its own
        that ends before the others do.
    """
    program = server_program()
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(str(state), f"cannot be made: {error.strerror}") from None
    check_path(_Places(state).broker("0" * 8) / JOURNAL)
    with locked(state):
        places = _Places(state)
        # Of one that was killed.
        places.operator.unlink(missing_ok=True)
        if fresh:
            forget(state)
        overlay = _overlay_record(places, brokers, say)
        listening = _choose_ports(overlay, port, given=port_given)
        rehearse()
        gc.collect()
        gc.freeze()
        places.logs.mkdir(exist_ok=True)
        children = Children(places.logs, final=STOPPED, say=say)
        try:
            _run(places, overlay, listening, program, children, ready, say, pages, settings, beside)
        finally:
            listening.close()
            for names in ([_BESIDE], [GATEWAY], overlay.brokers, [_BUCKETS, _SERVER]):
                children.stop(names, _STOPS_S)
            places.operator.unlink(missing_ok=True)


def _run(
    places: _Places,
    overlay: OverlayRecord,
    listening: socket.socket,
    program: Path,
    children: Children,
    ready: Callable[[dict[str, object]], None],
    say: Callable[[str], None],
    pages: Callable[[], PageRoutes] | None,
    settings: str,
    beside: Callable[[Path], int] | None,
) -> None:
    end = time.monotonic() + _STARTS_S
    while not _start_server(places, overlay, program, children, settings, end):
        # Somebody else was faster at this port.
        overlay.port = free_port()
    login = new_secret()
    making = children.add(_BUCKETS, _buckets(places.state), again=False)
    for name in overlay.brokers:
        broker = _broker(places.broker(name) / "broker.toml", name)
        children.add(name, _without(listening, broker))
    waiting = [_BUCKETS, *overlay.brokers, GATEWAY]
    while waiting and not children.stop_wanted:
        children.step(1.0)
        if making.code:
            raise DistributaryError(
                f"what gateways share cannot be made; hint: see {places.logs / _BUCKETS}.log"
            )
        if making.code == 0 and waiting[0] == _BUCKETS:
            children.add(GATEWAY, _gateway(places, listening, login, pages))
            waiting.pop(0)
        waiting = [name for name in waiting if name == _BUCKETS or not _is_ready(children, name)]
        _check(end, waiting, places)
        over = [name for name in waiting if name in children and children[name].over]
        if over:
            raise DistributaryError(
                f"{over[0]} cannot start; hint: see {places.logs / over[0]}.log"
            )
    if not children.stop_wanted:
        ready(
            {
                "gateway": _address(overlay),
                "console": None,
                "login": f"{_address(overlay)}/login/{login}",
                "nats": f"nats://127.0.0.1:{overlay.port}",
                "state": str(places.state.absolute()),
                "token": _token(places),
                "brokers": {name: children[name].pid for name in overlay.brokers},
                "server": children[_SERVER].pid,
            }
        )
        if beside is not None:
            children.add(_BESIDE, _without(listening, _aside(places.state, beside)))
    while not children.stop_wanted:
        children.step(_LOOK_S)
        if children.copy_wanted:
            children.copy_wanted = False
            try:
                with children.standing_still([*overlay.brokers, _SERVER]):
                    take_snapshot(places.state, places.state / SNAPSHOT, overlay.brokers)
            except OSError as error:
                say(f"{places.state / SNAPSHOT} cannot be written: {error.strerror}")


def _start_server(
    places: _Places,
    overlay: OverlayRecord,
    program: Path,
    children: Children,
    settings: str,
    end: float,
) -> bool:
    """Start the NATS server at the port of an overlay; return whether it is there."""
    name = secrets.token_hex(8)
    _write_all(places, overlay, name, settings)
    config = str(places.server_config)

    def serve(_: Callable[[], None]) -> int:
        os.execv(program, [str(program), "-c", config])  # noqa: S606, our own program

    server = children.add(_SERVER, serve, again=False)
    while not is_listening(overlay.port, name) and not children.stop_wanted:
        children.step(_SERVER_LOOK_S)
        _check(end, [_SERVER], places)
        if server.pid is None:
            return False
    server.again = True
    return True


def _broker(path: Path, name: str) -> Callable[[Callable[[], None]], int]:
    def run(ready: Callable[[], None]) -> int:
        log_to_stderr(name)
        return run_broker(read_config(path, {}), ready)

    return run


def _buckets(state: Path) -> Callable[[Callable[[], None]], int]:
    """Make what gateways share, which they must not do themselves."""

    def run(_: Callable[[], None]) -> int:
        log_to_stderr(_BUCKETS)
        operator = read_operator(state)
        server = Server((operator.url,), operator.user, operator.password)
        asyncio.run(make_buckets(Subjects(operator.overlay), server, operator.user))
        return os.EX_OK

    return run


def _without(
    listening: socket.socket, run: Callable[[Callable[[], None]], int]
) -> Callable[[Callable[[], None]], int]:
    """Have a process let go of the gateway's port, which else stays taken until it ends."""

    def alone(ready: Callable[[], None]) -> int:
        listening.close()
        return run(ready)

    return alone


def _gateway(
    places: _Places,
    listening: socket.socket,
    login: str,
    pages: Callable[[], PageRoutes] | None,
) -> Callable[[Callable[[], None]], int]:
    def run(ready: Callable[[], None]) -> int:
        # Here, so that brokers need not have in memory what only a gateway does.
        from distributary.network.gateway.config import read_gateway_config
        from distributary.network.gateway.pages import NO_PAGES
        from distributary.network.gateway.process import run_gateway

        log_to_stderr(GATEWAY)
        config = read_gateway_config(places.gateway / "gateway.toml", {})
        served = NO_PAGES if pages is None else pages()
        return run_gateway(
            config, ready, token=_token(places), login=login, pages=served, listening=listening
        )

    return run


def _aside(state: Path, beside: Callable[[Path], int]) -> Callable[[Callable[[], None]], int]:
    def run(_: Callable[[], None]) -> int:
        log_to_stderr(_BESIDE)
        return beside(state)

    return run


def _address(overlay: OverlayRecord) -> str:
    return f"http://127.0.0.1:{overlay.gateway_port}"


def _token(places: _Places) -> str:
    """Return the token by which everything is permitted, which stays as long as the state does."""
    path = places.gateway / "token"
    if not path.exists():
        write_private(path, new_secret())
    return path.read_text(encoding="ascii").strip()


def _is_ready(children: Children, name: str) -> bool:
    return name in children and children[name].ready


def _check(end: float, waiting: list[str], places: _Places) -> None:
    if time.monotonic() > end and waiting:
        raise DistributaryError(
            f"{waiting[0]} was not ready within {_STARTS_S:g} s; hint: see {places.logs}"
        )


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Have a folder to oneself."""
    with (state / "lock").open("a+") as lock:
        try:
            # Of this process alone: one that is forked does not keep it.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(
                str(state), "is in use by another overlay", hint="give another folder by --state"
            ) from None
        yield


def forget(state: Path) -> None:
    """Delete what there is of an overlay."""
    for name in _OURS:
        path = state / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def read_overlay_record(path: Path) -> OverlayRecord:
    """Return what is remembered of an overlay."""
    with naming(path):
        try:
            return msgspec.json.decode(path.read_bytes(), type=OverlayRecord)
        except msgspec.DecodeError as error:
            raise BadInput(
                "document", f"cannot be read: {error}", hint="--fresh begins anew"
            ) from None


def _overlay_record(places: _Places, count: int, say: Callable[[str], None]) -> OverlayRecord:
    """Return the overlay as it was, with further brokers if there are to be more."""
    if not places.overlay.exists():
        names = list(random_identifiers(count, np.random.default_rng()))
        overlay = OverlayRecord("up", names, count)
    else:
        overlay = read_overlay_record(places.overlay)
        if len(overlay.brokers) > count:
            say(f"{places.state} has {len(overlay.brokers)} brokers, and all of them are started")
        while len(overlay.brokers) < count:
            (name,) = random_identifiers(1, np.random.default_rng())
            if name not in overlay.brokers:
                overlay.brokers.append(name)
    return overlay


def _choose_ports(overlay: OverlayRecord, port: int, *, given: bool) -> socket.socket:
    """Have an overlay listen where it did before, or where it is told to, if nobody else does.

    Returns
    -------
    socket.socket
        The gateway's. This process has it as long as the overlay runs: while a gateway that
        has died is started again nobody else gets its port, and with it the tokens of its
        clients, and whoever connects meanwhile waits.
    """
    if given or not overlay.gateway_port:
        overlay.gateway_port, overlay.port = port, port + 1 if port else 0
    try:
        listening = listening_at("127.0.0.1", overlay.gateway_port)
    except OSError:
        listening = listening_at("127.0.0.1", 0)
    overlay.gateway_port = listening.getsockname()[1]
    overlay.port = free_port(overlay.port)
    return listening


def _write_all(places: _Places, overlay: OverlayRecord, server: str, settings: str) -> None:
    """Write the configuration of everybody, and what is remembered."""
    write_private(places.overlay, msgspec.json.encode(overlay).decode())
    subjects = Subjects(overlay.overlay)
    users = users_of(subjects, overlay.brokers, gateways=[GATEWAY], operators=[OPERATOR])
    config = server_config(
        name=server, port=overlay.port, users=users.values(), store=places.store.absolute()
    )
    write_private(places.server_config, config)
    url = f"nats://127.0.0.1:{overlay.port}"
    founders = overlay.brokers[: overlay.founders]
    for name in overlay.brokers:
        folder = places.broker(name)
        joins = (
            f"members = {json.dumps(founders)}"
            if name in founders
            else f"contact = {json.dumps(founders[0])}"
        )
        write_private(folder / "password", users[name].password)
        write_private(
            folder / "broker.toml",
            f"# Written by `distributary up` at every start.\n"
            f'[broker]\nidentity = "{name}"\noverlay = "{overlay.overlay}"\n{joins}\n\n'
            f'[nats]\nurls = ["{url}"]\nuser = "{name}"\npassword_file = "password"\n\n'
            f"{settings}",
        )
    write_private(places.gateway / "password", users[GATEWAY].password)
    write_private(
        places.gateway / "gateway.toml",
        f"# Written by `distributary up` at every start.\n"
        f'[gateway]\nbrokers = {json.dumps(overlay.brokers)}\noverlay = "{overlay.overlay}"\n'
        f"port = {overlay.gateway_port}\n\n"
        f'[nats]\nurls = ["{url}"]\nuser = "{GATEWAY}"\npassword_file = "password"\n',
    )
    operator = Operator(
        overlay.overlay,
        overlay.brokers,
        url,
        OPERATOR,
        users[OPERATOR].password,
        os.getpid(),
        _address(overlay),
        _token(places),
    )
    write_private(places.operator, msgspec.json.encode(operator).decode())


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, str(path)) as draft:
        draft.touch(mode=0o600)
        draft.write_text(text, encoding="utf-8")


def read_operator(state: Path) -> Operator:
    """Return how to ask the overlay that runs in a folder."""
    try:
        data = (state / "operator.json").read_bytes()
        return msgspec.json.decode(data, type=Operator)
    except (OSError, msgspec.DecodeError):
        raise BadInput(
            str(state), "has no overlay that runs", hint="distributary up starts one"
        ) from None
