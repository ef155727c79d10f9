"""Publishing: what a home broker does with what its clients publish."""

from distributary.broker.publishing.publishing import ClientPublications, Publishing

__all__ = ["ClientPublications", "Publishing"]
