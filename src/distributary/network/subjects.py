"""Subjects: the names under which messages go through NATS, and who may use which.

The sender is part of every subject, so that the server, which knows who is connected, vouches for
it: a broker may publish only what ends with its own name, a gateway only in the name of clients of
its prefix. What a message says of those behind the last hop is believed; brokers trust each other.

=========================  ==================================================================
`d.OVERLAY.b.TO.FROM`      from broker to broker
`d.OVERLAY.c.HOME.CLIENT`  from a client to its home
`d.OVERLAY.p.HOME.CLIENT`  whether a client is connected, said by who knows: `0` or `1`
`d.OVERLAY.i.CLIENT.HOME`  from a home to a client, its inbox
`d.OVERLAY.h.TO.FROM`      requests to the host of a broker: content, how it is
`d.OVERLAY.k.BUCKET.KEY`   that an entry of a bucket has changed, said by the server
=========================  ==================================================================

A client is three tokens: its tenant, the part of its name before the first slash, which is the
prefix of a gateway, and the rest.

Gateways share buckets of keys and values, which JetStream keeps. Whoever may make a stream or a
consumer may have the server say anything to anybody in its own name; and a server answers to
whatever subject a request names. So gateways may write entries and read them one by one, which is
answered in a form that no broker takes for a message, and nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache

from distributary.broker.addresses import Address, client_address, is_client, tenant_of
from distributary.errors import BadInput, PeerMisbehaved, quoted

__all__ = ["BUCKETS", "Subjects", "check_name"]

BUCKETS = ("clients", "sessions", "tokens")
"""What gateways share: where clients are, who is logged in, and who may do what."""

_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_ENCODED = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9a-f]{2})*|=")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_CLIENT_TOKENS = 3
_PREFIX_END = "/"
# No text is encoded as this. A name without a prefix is another one than with an empty one.
_NO_PREFIX = "=="


def check_name(place: str, name: str) -> str:
    """Return a name that can stand in a subject and in the name of a file as it is."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{place} {quoted(name)}", "must have 1 to 32 small letters, digits and dashes"
        )
    return name


def _token(text: str) -> str:
    """Return a text as one token: what is no letter or digit by its bytes, as in `=2e`."""
    data = text.encode()
    parts = [chr(byte) if _PLAIN.match(bytes([byte])) else f"={byte:02x}" for byte in data]
    return "".join(parts) or "="


def _text(token: str) -> str:
    if not _ENCODED.fullmatch(token):
        raise PeerMisbehaved(f"a subject with the token {quoted(token)}")
    if token == "=":  # noqa: S105, what stands for no text
        return ""
    data = re.sub(rb"=(..)", lambda found: bytes.fromhex(found[1].decode()), token.encode())
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise PeerMisbehaved(f"a subject with the token {quoted(token)}") from None
    if _token(text) != token:
        raise PeerMisbehaved(f"a subject with the token {quoted(token)}")
    return text


# Many messages go to few clients.
@lru_cache(maxsize=1 << 16)
def _client_tokens(client: Address) -> str:
    tenant = tenant_of(client)
    name = client.rpartition("@")[2]
    prefix, slash, rest = name.partition(_PREFIX_END)
    if not slash:
        return f"{_token(tenant)}.{_NO_PREFIX}.{_token(name)}"
    return f"{_token(tenant)}.{_token(prefix)}.{_token(rest)}"


def _client(tokens: list[str]) -> Address:
    tenant, prefix, rest = tokens
    name = _text(rest)
    if prefix != _NO_PREFIX:
        name = f"{_text(prefix)}{_PREFIX_END}{name}"
    try:
        client = client_address(name, _text(tenant))
    except BadInput as error:
        raise PeerMisbehaved(f"a subject that names no client: {error}") from None
    if _client_tokens(client).split(".") != tokens:
        raise PeerMisbehaved(f"a subject that names no client: {quoted('.'.join(tokens))}")
    return client


class Subjects:
    """The subjects of one overlay.

    Parameters
    ----------
    overlay
        Its name; several may share a server.
    """

    def __init__(self, overlay: str) -> None:
        self.overlay = check_name("overlay", overlay)
        self._begin = f"d.{overlay}"
        self._depth = 2

    def to_broker(self, to: str, sender: str) -> str:
        """Return the subject of messages between brokers."""
        return f"{self._begin}.b.{to}.{sender}"

    def to_home(self, home: str, client: Address) -> str:
        """Return the subject of what a client says to its home."""
        return f"{self._begin}.c.{home}.{_client_tokens(client)}"

    def presence(self, home: str, client: Address) -> str:
        """Return the subject of whether a client is connected."""
        return f"{self._begin}.p.{home}.{_client_tokens(client)}"

    def to_client(self, client: Address, home: str) -> str:
        """Return the subject of what a home says to a client."""
        return f"{self._begin}.i.{_client_tokens(client)}.{home}"

    def to_host(self, to: str, sender: str) -> str:
        """Return the subject of requests to the host of a broker."""
        return f"{self._begin}.h.{to}.{sender}"

    def inbox(self, name: str) -> str:
        """Return what the subjects of answers to somebody begin with, which nobody else reads."""
        return f"_INBOX_{self.overlay}_{name}"

    def bucket(self, name: str) -> str:
        """Return what one of this overlay's buckets of keys and values is called at the server."""
        return f"{self.overlay}_{name}"

    def entry(self, bucket: str, *key: str) -> str:
        """Return the subject of one entry of a bucket, or what those of several begin with."""
        return ".".join((f"$KV.{self.bucket(bucket)}", *map(_token, key)))

    def key(self, bucket: str, subject: str, *, begin: str = "") -> tuple[str, ...]:
        """Return the key of an entry by its subject, or by that of a change."""
        begin = begin or self.entry(bucket)
        return tuple(_text(token) for token in subject.removeprefix(f"{begin}.").split("."))

    def changes(self, bucket: str) -> str:
        """Return what the subjects begin with by which a bucket says what has changed in it."""
        return f"{self._begin}.k.{bucket}"

    def may_speak_for(self, gateway: str, client: Address) -> bool:
        """Whether somebody is the gateway of a client."""
        try:
            return _client_tokens(client).split(".")[1] == _token(gateway)
        except BadInput:
            return False

    def sender(self, subject: str) -> tuple[str, Address]:
        """Return the kind of a subject to a broker, and who sent it.

        Raises
        ------
        PeerMisbehaved
            When it is none of ours.
        """
        tokens = subject.split(".")
        kind, rest = tokens[self._depth], tokens[self._depth + 2 :]
        if kind in "cp" and len(rest) == _CLIENT_TOKENS:
            return kind, _client(rest)
        if kind in "bh" and len(rest) == 1 and not is_client(rest[0]):
            return kind, rest[0]
        raise PeerMisbehaved(f"the subject {quoted(subject)}")

    def read_by_broker(self, broker: str) -> tuple[str, ...]:
        """Return what a broker subscribes to, besides answers."""
        begin = self._begin
        return tuple(
            f"{begin}.{kind}.{broker}.{senders}"
            for kind, senders in (("b", "*"), ("c", "*.*.*"), ("p", "*.*.*"), ("h", "*"))
        )

    def written_by_broker(self, broker: str) -> tuple[str, ...]:
        """Return what a broker publishes, besides answers."""
        begin = self._begin
        return (f"{begin}.b.*.{broker}", f"{begin}.i.*.*.*.{broker}", f"{begin}.h.*.{broker}")

    def read_by_gateway(self, name: str) -> tuple[str, ...]:
        """Return what a gateway subscribes to: the inboxes of clients of its prefix."""
        return (f"{self._begin}.i.*.{_token(name)}.*.*",)

    def changes_read_by_gateway(self) -> tuple[str, ...]:
        """Return how a gateway hears what others write into the buckets."""
        return tuple(f"{self.changes(bucket)}.>" for bucket in BUCKETS)

    def written_by_gateway(self, name: str) -> tuple[str, ...]:
        """Return what a gateway publishes: in the names of these clients, and as itself."""
        begin, prefix = self._begin, _token(name)
        return (
            f"{begin}.c.*.*.{prefix}.*",
            f"{begin}.p.*.*.{prefix}.*",
            f"{begin}.h.*.{name}",
            *(f"{self.entry(bucket)}.>" for bucket in BUCKETS),
            *(f"$JS.API.STREAM.MSG.GET.KV_{self.bucket(bucket)}" for bucket in BUCKETS),
        )

    def written_by_operator(self, name: str) -> tuple[str, ...]:
        """Return what somebody publishes who asks hosts how they are, and makes the buckets."""
        return (
            f"{self._begin}.h.*.{name}",
            *(
                f"$JS.API.STREAM.{verb}.KV_{self.bucket(bucket)}"
                for verb in ("CREATE", "UPDATE")
                for bucket in BUCKETS
            ),
        )
