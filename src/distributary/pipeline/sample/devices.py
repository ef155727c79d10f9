"""What users hold in their hands, as device profiles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import IntArray
from distributary.pipeline.sample.counter_rng import CounterRng, picked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DEVICES", "user_profiles"]

# Name, share of users, profile; without a profile a user takes the original.
DEVICES: tuple[tuple[str, float, dict[str, object] | None], ...] = (
    (
        "console",
        0.25,
        {
            "accept": ["application/pdf", "image/*;q=0.9", "video/*;q=0.9", "*/*;q=0.1"],
            "screen": {"width": 2560, "height": 1440},
        },
    ),
    (
        "tablet",
        0.15,
        {
            "accept": ["image/webp", "video/mp4", "application/json;q=0.8", "*/*;q=0.3"],
            "screen": {"width": 1280, "height": 800},
            "bandwidth_kbps": 8000,
        },
    ),
    (
        "phone",
        0.35,
        {
            "accept": [
                "image/jpeg",
                "video/3gpp",
                "video/*;q=0.9",
                "application/json;q=0.8",
                "text/plain;charset=utf-8;q=0.5",
            ],
            "screen": {"width": 390, "height": 844},
            "bandwidth_kbps": 2000,
        },
    ),
    (
        "radio",
        0.1,
        {
            "accept": ["audio/mpeg", "audio/*;q=0.9", "application/json;q=0.2"],
            "bandwidth_kbps": 64,
        },
    ),
    (
        "terminal",
        0.05,
        {"accept": ["text/plain;charset=us-ascii", "text/*;q=0.8", "application/json;q=0.5"]},
    ),
    ("browser", 0.1, None),
)


def user_profiles(seed: int, users: IntArray) -> pa.Array:
    """Return the profile of each of the users as JSON, null for those without one."""
    import pyarrow as pa

    shares = np.array([share for _, share, _ in DEVICES])
    known = pa.array(
        [
            None if profile is None else json.dumps(profile, separators=(",", ":"))
            for _, _, profile in DEVICES
        ],
        pa.string(),
    )
    return known.take(pa.array(picked(CounterRng(seed, "devices").uniform("kind", users), shares)))
