"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A first call compiles, so single examples have no deadline; a failure prints its replay.
# Examples are the same in every run, so that a change is to blame when one fails, unless the
# environment asks to look for others, as `make test-full` does.
settings.register_profile(
    "distributary",
    deadline=None,
    print_blob=True,
    derandomize="EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("distributary")
