"""The nouns of distributary: events, formats, spaces, profiles, subscriptions, tolerances.

They are loaded when they are first asked for: a process that only reads a media type should
start at once, without NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.content.adaptation_graph import AdaptationGraph
    from distributary.content.content_space import ContentSpace
    from distributary.content.divergence import Version
    from distributary.content.format_choice import FormatChoice, NoFormat, choices, choose_format
    from distributary.content.media_type import MediaType
    from distributary.content.profile import DeviceProfile
    from distributary.content.publication import Publication, delivered, parse_event
    from distributary.content.subscription import Subscription
    from distributary.content.tolerance import (
        EffectiveTolerance,
        ForwardingRule,
        Tolerance,
        outside,
    )

__all__ = [
    "AdaptationGraph",
    "ContentSpace",
    "DeviceProfile",
    "EffectiveTolerance",
    "FormatChoice",
    "ForwardingRule",
    "MediaType",
    "NoFormat",
    "Publication",
    "Subscription",
    "Tolerance",
    "Version",
    "choices",
    "choose_format",
    "delivered",
    "outside",
    "parse_event",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "adaptation_graph": ("AdaptationGraph",),
        "content_space": ("ContentSpace",),
        "divergence": ("Version",),
        "format_choice": ("FormatChoice", "NoFormat", "choices", "choose_format"),
        "media_type": ("MediaType",),
        "profile": ("DeviceProfile",),
        "publication": ("Publication", "delivered", "parse_event"),
        "subscription": ("Subscription",),
        "tolerance": ("EffectiveTolerance", "ForwardingRule", "Tolerance", "outside"),
    },
)
