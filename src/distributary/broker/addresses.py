"""Addresses and digests: who a message is from, where it goes, and which content it names.

A broker's address is its identifier in the overlay, hexadecimal digits. A client's begins
with a sign that no identifier has, and the host that carries out effects has one of its own.

Bytes are never inside a message or a record: they are in the content stores of hosts, and go
from host to host. What brokers tell each other is what they are, how many, and their digest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from distributary.errors import BadInput, quoted

__all__ = [
    "CLIENT_SIGN",
    "HOST",
    "Address",
    "Blob",
    "Speaker",
    "client_address",
    "has_digits",
    "is_broker",
    "is_client",
    "is_digest",
    "is_tenant",
    "publisher_of",
    "speaker_at",
    "tenant_of",
]


Address: TypeAlias = str

HOST: Address = "!"
"""The sender of what a host has to say itself, such as that a conversion is done."""

CLIENT_SIGN = "@"
"""What the address of a client begins with."""

_NAME_CHARACTERS_MAX = 200
_DIGITS = frozenset("0123456789abcdef")
_TENANT_CHARACTERS_MAX = 64
_TENANT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Speaker(Enum):
    """Who says something to a broker, or for a broker to others."""

    BROKER = "brokers"
    CLIENT = "clients"
    HOST = "hosts"


def client_address(name: str, tenant: str = "") -> Address:
    """Return the address of a client.

    Parameters
    ----------
    name
        Any text without the sign that begins addresses.
    tenant
        Whose client it is: small letters, digits and dashes. Nothing that tenants publish,
        want or keep is ever seen by another; where nobody tells tenants apart there is one
        without a name.
    """
    if not 1 <= len(name) <= _NAME_CHARACTERS_MAX or CLIENT_SIGN in name:
        raise BadInput(
            f"client {quoted(name)}",
            f"must have 1 to {_NAME_CHARACTERS_MAX} characters in its name, "
            f"none of them {CLIENT_SIGN}",
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise BadInput(f"client {quoted(name)}", "must have a name in Unicode") from None
    if not is_tenant(tenant):
        raise BadInput(
            f"tenant {quoted(tenant)}",
            f"must have at most {_TENANT_CHARACTERS_MAX} small letters, digits and dashes",
        )
    return f"{CLIENT_SIGN}{tenant}{CLIENT_SIGN}{name}" if tenant else f"{CLIENT_SIGN}{name}"


def is_tenant(tenant: str) -> bool:
    """Whether a text can be the name of a tenant, or is that of the only one."""
    return len(tenant) <= _TENANT_CHARACTERS_MAX and _TENANT_CHARACTERS.issuperset(tenant)


@lru_cache(maxsize=16_384)
def tenant_of(client: Address) -> str:
    """Return whose client has an address; "" where nobody tells tenants apart."""
    tenant, sign, _ = client.removeprefix(CLIENT_SIGN).partition(CLIENT_SIGN)
    return tenant if sign else ""


def publisher_of(client: Address) -> int:
    """Return the name under which items tell who has published them, and nobody's name."""
    return int.from_bytes(hashlib.blake2b(client.encode(), digest_size=6).digest(), "big")


def is_client(address: Address) -> bool:
    """Whether an address is a client's."""
    return address[:1] == CLIENT_SIGN


def is_broker(address: Address, digits: int) -> bool:
    """Whether an address can be a broker's in an overlay whose identifiers have some digits."""
    return len(address) == digits and has_digits(address)


@lru_cache(maxsize=16_384)
def has_digits(address: Address) -> bool:
    """Whether there are only digits: asked of the same few names in every message."""
    return _DIGITS.issuperset(address)


def speaker_at(address: Address) -> Speaker:
    """Return what kind of speaker has an address."""
    if address[:1] == CLIENT_SIGN:
        return Speaker.CLIENT
    return Speaker.HOST if address == HOST else Speaker.BROKER


_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Content in one format, whose bytes are elsewhere.

    Attributes
    ----------
    digest
        SHA-256 of the bytes, in 64 hexadecimal digits: what they are asked for by.
    """

    media_type: str
    size_bytes: int
    digest: str

    @classmethod
    def of(cls, media_type: str, data: bytes) -> Blob:
        """Return what refers to some bytes."""
        return cls(media_type, len(data), hashlib.sha256(data).hexdigest())

    @classmethod
    def imagined(cls, media_type: str, size_bytes: int, name: str) -> Blob:
        """Return what refers to content that there is not: it has a size and a name."""
        digest = hashlib.sha256(f"{media_type}\n{name}".encode()).hexdigest()
        return cls(media_type, size_bytes, digest)


def is_digest(text: str) -> bool:
    """Whether a text can be the digest of content."""
    return _DIGEST.fullmatch(text) is not None
