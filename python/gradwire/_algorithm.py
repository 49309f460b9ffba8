"""Algorithms, written in Python."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import SimpleNamespace

    from numpy.typing import ArrayLike

    from ._core import ClientContext, ServerContext
    from ._types import Reply, Vector


class Algorithm:
    """A federated algorithm: two functions, one for clients and one for the server. Derive from it.

    A state may be any object that pickle can write, None by default. Each call gets a copy of its own: a client
    whose reply a round does not use keeps the state from before. Equal arguments must give equal results, so random
    numbers come from c.rng and s.rng.
    """

    def name(self) -> str:
        """Returns a name with the algorithm's parameters. A folder of results resumes only with the same name."""
        return type(self).__name__

    def start(self, s: SimpleNamespace) -> tuple[Any, Any]:
        """Returns (state of every client, state of the server) before round 0. s.x is the start point, shape (d,)."""
        return None, None

    def client(self, c: ClientContext, x: Any, state: Any) -> tuple[Reply, Any]:
        """Returns (reply, next state). The reply is a vector of shape (d,), a Payload, or a tuple of up to four.
        `c` is a ClientContext."""
        raise NotImplementedError("an algorithm needs the method client(self, c, x, state)")

    def server(self, s: ServerContext, x: Vector, state: Any) -> tuple[Vector, Any]:
        """Returns (next x, next state). `s` is a ServerContext."""
        raise NotImplementedError("an algorithm needs the method server(self, s, x, state)")

    def asks_all(self, t: int) -> bool:
        """True if round t asks all clients, whatever clients.participation is."""
        return False

    def cohort(self, s: ServerContext) -> ArrayLike | None:
        """Returns the clients that the round asks, as numbers, or None for a sample by clients.participation. s.x is None."""
        return None

    def broadcast(self, s: ServerContext, x: Vector, state: Any) -> Reply | None:
        """Returns what the clients get in place of x: a vector, a Payload, or a tuple of up to four. client() gets the vector,
        or a tuple of vectors, and c.received has the payloads. None stands for x. A client may have missed earlier rounds."""
        return None
