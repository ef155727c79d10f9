"""What goes wrong between a client and its gateway, as a sentence and with what programs need."""

from __future__ import annotations

import json
from http import HTTPStatus

from distributary.errors import DistributaryError

__all__ = [
    "GatewayAway",
    "RequestRefused",
    "SubscriptionEnded",
    "SubscriptionTaken",
    "problem_sentence",
]

_SENTENCE_CHARACTERS_MAX = 500


class RequestRefused(DistributaryError):
    """A gateway refused what it was asked for.

    Attributes
    ----------
    status
        The code of its answer, as in HTTP.
    reason
        What it said.
    """

    def __init__(self, status: int, reason: str) -> None:
        if status == HTTPStatus.UNAUTHORIZED:
            # Of headers, which a gateway hints at, whoever has a client knows nothing.
            reason = f"{reason.partition('; hint: ')[0]}; hint: set DISTRIBUTARY_TOKEN"
        self.status = status
        self.reason = reason
        super().__init__(f"the gateway refuses: {reason}")


class GatewayAway(DistributaryError):
    """A gateway did not answer for as long as we were willing to wait.

    Attributes
    ----------
    url
        Where it was looked for.
    """

    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        super().__init__(
            f"{url}: does not answer: {problem}; "
            "hint: distributary up starts a gateway on this machine"
        )


class SubscriptionEnded(DistributaryError):
    """A subscription has ended by itself, as when too much has waited for it.

    Attributes
    ----------
    subscription
        Its identifier.
    """

    def __init__(self, subscription: str, reason: str) -> None:
        self.subscription = subscription
        super().__init__(f"subscription {subscription}: has ended: {reason}")


class SubscriptionTaken(DistributaryError):
    """Somebody else reads this subscription now.

    Attributes
    ----------
    subscription
        Its identifier.
    """

    def __init__(self, subscription: str) -> None:
        self.subscription = subscription
        super().__init__(
            f"subscription {subscription}: a newer connection reads it; "
            "hint: one reader each, or a subscription for each reader"
        )


def problem_sentence(body: bytes, status: int) -> str:
    """Return what an answer with an error says: the detail of its problem document, on one line."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    said: object = None
    if isinstance(document, dict):
        said = document.get("detail") or document.get("title")
    text = " ".join(str(said).split()) if said else f"status {status} without a reason"
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain[:_SENTENCE_CHARACTERS_MAX]
