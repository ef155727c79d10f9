"""Conversions for a broker, in a pool of processes that can be killed."""

from __future__ import annotations

from distributary.broker.addresses import Blob
from distributary.media.pool import Pool
from distributary.network.transfers import Transfers

__all__ = ["PoolConversions"]


class PoolConversions:
    """Converts content from the store into the store; what a `NetworkHost` calls.

    Parameters
    ----------
    pool
        Where conversions run.
    transfers
        Where content is.
    """

    def __init__(self, pool: Pool, transfers: Transfers) -> None:
        self._pool = pool
        self._transfers = transfers

    async def __call__(self, blob: Blob, target: str, data: bytes | None) -> tuple[Blob, float]:
        """Return content in another format, or raise `ConversionFailed`, and the time it took."""
        store, do = self._transfers.store, self._transfers.do
        if data is None:
            data = await do(store.read, blob.digest)
        result = await self._pool.convert_async(data, blob.media_type, target)
        await do(store.put, result.content)
        return Blob.of(target, result.content), result.seconds
