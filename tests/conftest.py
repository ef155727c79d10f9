"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A first call compiles, so single examples have no deadline; a failure prints its replay.
settings.register_profile(
    "distributary",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("distributary")
