"""Admission: what a home takes from its clients, what it refuses, and when it is busy.

All of it is decided here. A refusal is for good: the client did something that it may not do. A
broker that is busy has done too much for now, and takes the same publication later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distributary.broker.addresses import Address, is_tenant, tenant_of
from distributary.broker.client import Publish
from distributary.broker.host import SourceOwners
from distributary.broker.publishing.publications import checked
from distributary.broker.settings import PublishingSettings, ns
from distributary.broker.validation import Check, Rules
from distributary.content import Publication
from distributary.errors import BadInput, PeerMisbehaved, quoted

__all__ = ["CHECKS", "SESSION_CHARACTERS_MAX", "Admission"]

SESSION_CHARACTERS_MAX = 64
_ENDS = ("/", ":")


class Admission:
    """What one broker takes from its clients.

    Attributes
    ----------
    items, bytes
        How many publications are kept, and what they take.
    wait_ns
        How long clients are to wait when the broker is busy.
    content_bytes_max
        How large content may be.
    """

    def __init__(self, settings: PublishingSettings, content_bytes_max: int) -> None:
        self.content_bytes_max = content_bytes_max
        self.items = 0
        self.bytes = 0
        self.wait_ns = ns(settings.busy_s)
        self._settings = settings
        self._owners: dict[str, str] = {}

    def told(self, owners: Iterable[tuple[str, str]]) -> None:
        """Learn whose sources are whose."""
        self._owners = dict(owners)

    def read(self, message: Publish, client: Address) -> Publication:
        """Return the event that a client publishes.

        Raises
        ------
        BadInput
            When it is none that this client may publish.
        """
        publication = checked(message, self.content_bytes_max)
        self.check_source(publication.source, client)
        return publication

    def check_source(self, source: str, client: Address) -> None:
        """Refuse the source of another tenant by `BadInput`."""
        owner = self._owner(source)
        if owner is not None and owner != tenant_of(client):
            raise BadInput("source", f"{quoted(source)} is another tenant's")

    def _owner(self, source: str) -> str | None:
        """Return whose a source is, by the longest prefix; None when it is everybody's."""
        if self._owners:
            for end in range(len(source), 0, -1):
                if source[end - 1] in _ENDS:
                    owner = self._owners.get(source[:end])
                    if owner is not None:
                        return owner
        return None

    def is_busy(self, *, early_bytes: int, identities: int) -> bool:
        """Whether nothing more can be taken now.

        Parameters
        ----------
        early_bytes
            What publications that wait for others take.
        identities
            How many publications are known.
        """
        settings = self._settings
        return (
            self.items >= settings.items_max
            or self.bytes + early_bytes >= settings.bytes_max
            or identities >= settings.identities_max
        )


def _check_publish(message: Publish, rules: Rules) -> None:
    """Refuse a number that no session has."""
    if len(message.session) > SESSION_CHARACTERS_MAX:
        raise PeerMisbehaved(f"a session with a name of {len(message.session):,} characters")
    rules.numbers((message.number, message.first))
    if message.number and not 1 <= message.first <= message.number:
        raise PeerMisbehaved(f"publication {message.number} of a session, begun at {message.first}")


def _check_owners(message: SourceOwners, rules: Rules) -> None:
    """Refuse prefixes that end within a name, and tenants that are none."""
    for prefix, tenant in message.owners:
        if not prefix.endswith(_ENDS):
            raise PeerMisbehaved(f"the prefix {quoted(prefix)} of sources ends at neither / nor :")
        if not is_tenant(tenant):
            raise PeerMisbehaved(f"{quoted(tenant)} is not a tenant")


CHECKS: Mapping[type, Check] = {Publish: _check_publish, SourceOwners: _check_owners}
"""What must hold of messages beyond the types of their fields."""
