"""The NATS server: ours, at a port that is free, and nobody else's."""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path

from tests.nats_server import NatsServer, shared_server

from distributary.network.server import (
    User,
    free_port,
    is_listening,
    server_config,
    users_of,
)
from distributary.network.subjects import Subjects


def test_somebody_elses_server_at_our_port_is_not_ours(tmp_path: Path) -> None:
    server = shared_server()
    assert is_listening(server.port, server.name)
    assert not is_listening(server.port, "another")
    assert not is_listening(free_port(), server.name)


def test_what_is_no_server_is_not_ours() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def greet() -> None:
            for words in (b"220 hello\r\n", b"INFO nonsense\r\n", b""):
                one, _ = other.accept()
                one.sendall(words)
                one.close()

        thread = threading.Thread(target=greet)
        thread.start()
        assert not any(is_listening(other.getsockname()[1], "us") for _ in range(3))
        thread.join()


def test_a_port_that_is_taken_is_replaced() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


def test_a_server_that_was_killed_comes_back_at_its_port(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, [User("a", ("x",), ("y",))])
    server.kill()
    assert not is_listening(server.port, server.name)
    server.start()
    assert is_listening(server.port, server.name)
    server.kill()


def test_everybody_has_a_password_of_its_own_and_no_more_than_its_subjects() -> None:
    users = users_of(Subjects("o"), ["0a", "0b"], gateways=["gateway"], operators=["operator"])
    assert len({user.password for user in users.values()}) == 4
    assert all(len(user.password) >= 32 for user in users.values())
    assert not any(user.password in repr(user) for user in users.values())
    ours = re.compile(
        r"(d\.o|_INBOX_o_[a-z0-9]+|\$KV\.o_[a-z]+)\..+|\$JS\.API\.STREAM\.[A-Z.]+\.KV_o_[a-z]+"
    )
    for user in users.values():
        assert all(ours.fullmatch(subject) for subject in user.publish + user.subscribe)
    for name in ("0a", "0b"):
        assert not any(subject.startswith("$") for subject in users[name].publish)
    config = json.loads(server_config(name="n", port=1, users=users.values()))
    assert config["host"] == "127.0.0.1"
    allowed = {one["user"]: one["permissions"] for one in config["authorization"]["users"]}
    assert [name for name, one in allowed.items() if "allow_responses" in one] == ["0a", "0b"]
