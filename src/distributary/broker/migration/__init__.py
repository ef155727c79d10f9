"""Moving clients to brokers at which they cost less."""

from distributary.broker.migration.migration import Migration

__all__ = ["Migration"]
