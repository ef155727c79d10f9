"""Conversions for a broker, in a pool of processes that can be killed."""

from __future__ import annotations

from distributary.broker.blob import Blob
from distributary.content.media_type import MediaType
from distributary.media.failure import ConversionFailed
from distributary.media.pool import Pool

__all__ = ["PoolConversions"]


class PoolConversions:
    """Converts the content of blobs; what a `NetworkHost` calls.

    Parameters
    ----------
    pool
        Where conversions run.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def __call__(self, blob: Blob, target: str) -> Blob:
        """Return content in another format, or raise `ConversionFailed`."""
        if blob.data is None:
            raise ConversionFailed(
                MediaType.parse(blob.media_type),
                MediaType.parse(target),
                kind="damaged",
                reason="its bytes are not here",
                limits=self._pool.limits,
            )
        result = await self._pool.convert_async(blob.data, blob.media_type, target)
        return Blob.of(target, result.content)
