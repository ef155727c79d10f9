"""Intake: in which order a home takes what its clients publish, and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Accepted, Busy, ContentMissing, Publish, Refused, named_in
from distributary.broker.effects import Turn
from distributary.broker.host import SourceOwners
from distributary.broker.publishing.admission import Admission
from distributary.broker.publishing.publications import checked, key_of
from distributary.broker.publishing.sessions import Session, Sessions
from distributary.content import Publication
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.publishing.publishing import Publishing

__all__ = ["Intake"]

_Objection = Busy | ContentMissing
"""Why a publication is not taken now, and uses up no number."""

_DISK_FULL = "the disk of this broker is nearly full"


class Intake:
    """What comes from the clients of one broker.

    Attributes
    ----------
    sessions
        How far each client is.
    admission
        What is taken at all.
    """

    def __init__(self, publishing: Publishing) -> None:
        core = publishing.core
        settings = core.settings.publishing
        self.sessions = Sessions(core.timers, settings)
        self.admission = Admission(settings, core.settings.content.content_bytes_max)
        self._publishing = publishing
        self._early_max = settings.early_max

    def source_owners(self, message: SourceOwners, sender: Address, turn: Turn) -> None:
        """Learn whose sources are whose."""
        self.admission.told(message.owners)

    def publish(self, message: Publish, sender: Address, turn: Turn) -> None:
        """Take a publication in its turn."""
        number = message.number
        if not number:
            objection = self._take(message, sender, None, turn)
            if objection is not None:
                turn.send(sender, objection)
            return
        session = self.sessions.open(sender, message.session, message.first, turn)
        if number == session.busy:
            session.busy = None
        if number <= session.last:
            self._answer_again(message, sender, turn)
        elif session.busy is not None and number > session.busy:
            turn.send(sender, self._busy(message))
        elif number == session.last + 1:
            self._take_in_turn(message, session, turn)
        elif number > session.last + 1 + self._early_max or self._is_busy():
            self._give_way(message, self._busy(message), session, turn)
        else:
            self.sessions.hold(session, message)

    def _take_in_turn(self, message: Publish, session: Session, turn: Turn) -> None:
        """Take a publication whose turn it is, and those that have waited for it."""
        following: Publish | None = message
        while following is not None:
            objection = self._take(following, session.client, session, turn)
            if objection is not None:
                self._give_way(following, objection, session, turn)
                return
            following = self.sessions.following(session)

    def _give_way(
        self, message: Publish, objection: _Objection, session: Session, turn: Turn
    ) -> None:
        """Take nothing from a publication on until it comes again."""
        turn.send(session.client, objection)
        for later in self.sessions.give_way(session, message.number):
            turn.send(session.client, self._busy(later))

    def _busy(self, message: Publish) -> Busy:
        name = ("", "") if message.number else named_in(message.event)
        reason = _DISK_FULL if self._publishing.core.storage.low else ""
        return Busy(self.admission.wait_ns, *name, message.session, message.number, reason)

    def _missing(
        self, message: Publish, publication: Publication, client: Address
    ) -> ContentMissing | None:
        """Return what a client is told whose content is not here; None when it is.

        Raises
        ------
        BadInput
            When the content that is here has another size.
        """
        blob = message.blob
        if blob is None:
            return None
        size = self._publishing.core.content.size_for(tenant_of(client), blob.digest)
        if size is None:
            number = (message.session, message.number)
            return ContentMissing(*publication.identity, blob.digest, *number)
        if size != blob.size_bytes:
            raise BadInput("content", f"has {size:,} bytes, not {blob.size_bytes:,}")
        return None

    def _is_busy(self) -> bool:
        # A refusal would use up the client's number: it can have it again when there is room.
        if self._publishing.core.storage.low:
            return True
        return self.admission.is_busy(
            early_bytes=self.sessions.early_bytes,
            identities=self._publishing.known_count,
        )

    def _answer_again(self, message: Publish, sender: Address, turn: Turn) -> None:
        """Answer what comes again as it was answered before.

        What is not known was refused: what was accepted is known for as long as clients may
        come back. To try it anew would let it come after what was published later.
        """
        try:
            publication = checked(message, self.admission.content_bytes_max)
            if not self._publishing.knows(key_of(sender, *publication.identity)):
                self.admission.check_source(publication.source, sender)
                raise BadInput("number", f"{message.number} of the session was used before")
        except BadInput as error:
            self._refuse(message, sender, error, turn)
        else:
            self._accept(message, sender, publication, turn)

    def _accept(
        self, message: Publish, client: Address, publication: Publication, turn: Turn
    ) -> None:
        turn.send(client, Accepted(*publication.identity, message.session, message.number))

    def _refuse(self, message: Publish, client: Address, error: BadInput, turn: Turn) -> None:
        name = named_in(message.event)
        number = (message.session, message.number)
        turn.send(client, Refused("publication", str(error), *name, *number))

    def _take(
        self, message: Publish, client: Address, session: Session | None, turn: Turn
    ) -> _Objection | None:
        """Accept or refuse a publication, whose number is used up, or say why that must wait."""
        try:
            publication = self.admission.read(message, client)
            known = self._publishing.knows(key_of(client, *publication.identity))
            missing = None if known else self._missing(message, publication, client)
        except BadInput as error:
            self._use_up(session, turn)
            self._refuse(message, client, error, turn)
            return None
        kept = None
        if known:
            self._use_up(session, turn)
        elif self._is_busy():
            return self._busy(message)
        elif missing is not None:
            return missing
        else:
            if session is not None:
                session.last = message.number
            kept = self._publishing.store(message, publication, client, turn)
        self._accept(message, client, publication, turn)
        if kept is not None:
            self._publishing.offer(kept, turn)
        return None

    def _use_up(self, session: Session | None, turn: Turn) -> None:
        """Note that the next number is used up by something of which nothing is kept."""
        if session is not None:
            session.last += 1
            self.sessions.record(session, turn)
