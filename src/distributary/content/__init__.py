"""The nouns of distributary: events, formats, spaces, profiles, subscriptions, tolerances."""

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
    effective_tolerances,
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
    "effective_tolerances",
    "outside",
    "parse_event",
]
