"""How large a wiring problem may be, wherever it comes from."""

from __future__ import annotations

from distributary.errors import BadInput

__all__ = ["BROKERS_MAX", "CHANNELS_MAX", "USERS_MAX", "check_size"]

USERS_MAX = 1_000_000
BROKERS_MAX = 10_000
CHANNELS_MAX = 65_536
# Prices between users and brokers are held as one table of eight bytes each.
_PRICES_MAX = 250_000_000


def check_size(*, users: int, brokers: int, channels: int) -> None:
    """Raise `BadInput` for a problem without users or brokers, or beyond the limits."""
    for place, count, most in (
        ("users", users, USERS_MAX),
        ("brokers", brokers, BROKERS_MAX),
    ):
        if count == 0:
            raise BadInput(place, "is empty")
        if count > most:
            raise BadInput(place, f"has {count:,} entries; at most {most:,} are read")
    if channels > CHANNELS_MAX:
        raise BadInput("channels", f"are {channels:,}; at most {CHANNELS_MAX:,} are read")
    if users * brokers > _PRICES_MAX:
        raise BadInput(
            "access_cost",
            f"{users:,} users and {brokers:,} brokers have {users * brokers:,} prices; "
            f"at most {_PRICES_MAX:,} are read",
        )
