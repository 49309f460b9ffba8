"""Compressors, written in Python."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._core import CompressorConstants, Payload, RandomStream
    from ._types import Vector


class UserCompressor:
    """A compressor. Derive from it.

    Equal arguments must give equal results, so random numbers come from `random`. A run calls the methods on its own
    thread, unless `thread_safe` is True.
    """

    thread_safe: bool = False  # True: several threads of a run may call the methods at the same time

    def name(self) -> str:
        """Returns a name with the compressor's parameters; algorithm.compressor becomes "custom:NAME"."""
        return type(self).__name__

    def constants(self, dim: int) -> CompressorConstants:
        """Returns the constants for one client; clients draw independently."""
        raise NotImplementedError("a compressor needs the method constants(self, dim)")

    def compress(self, v: Vector, random: RandomStream) -> Payload | Vector:
        """Compresses v, shape (dim,). Returns a Payload, as Payload.sparse(dim, indices, values), or a vector of shape
        (dim,), all of which is sent."""
        raise NotImplementedError("a compressor needs the method compress(self, v, random)")

    def drawn_indices(self, dim: int, random: RandomStream) -> ArrayLike | None:
        """Returns the indices that compress() sends, if they depend only on dim and on equal random numbers. The receiver
        then draws them again, and they cost no bits. None: they are sent."""
        return None
