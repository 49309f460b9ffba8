"""The library's own functions."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from . import _core
from ._data import data_of
from ._experiment import experiment_with, flat
from ._oracle import _NO_BATCH, Oracle

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._types import Batch, Changes, Samples, Source, Vector


class Constants(NamedTuple):
    """The smoothness of a problem: |gradient(x) - gradient(y)| <= L |x - y|."""

    L: float  # of f
    L_i: NDArray[np.float64]  # of the function of each client
    mu: float  # strong convexity of f; 0 if unknown or none
    estimated: bool  # True: these are the largest curvatures that were found near the start


class _ProblemOracle(Oracle):
    """The function of a client of a Problem. Its precision is that of x."""

    thread_safe = True

    def __init__(self, problem: Problem, client: int) -> None:
        self._native = problem._native.oracle(client)
        self.dim, self.samples, self.start = problem.dim, self._native.samples(), problem.start

    def _parts(self) -> tuple[Any, ...]:
        return None, 0, self.dim, self.samples, None, None, True, None, None, self._native

    def _call(self, function: Any, x: ArrayLike, batch: ArrayLike | None = None) -> Any:
        point = np.ascontiguousarray(x)
        is_fp32 = point.dtype == np.float32
        return function(point if is_fp32 else point.astype(np.float64, copy=False),
                        _NO_BATCH if batch is None else np.ascontiguousarray(batch, np.uint32), is_fp32)

    def loss_and_gradient(self, x: ArrayLike, batch: ArrayLike | None = None,
                          out: Vector | None = None) -> tuple[float, Vector]:
        """Returns (loss, gradient) at x over the samples `batch` (default: all)."""
        loss, gradient = self._call(self._native.loss_and_gradient, x, batch)
        if out is not None:
            out[:] = gradient
        return loss, gradient

    def loss(self, x: ArrayLike, batch: ArrayLike | None = None) -> float:
        """Returns the loss alone, with the same bits."""
        return float(self._call(self._native.loss, x, batch))

    def score(self, x: ArrayLike) -> tuple[int, int] | None:
        """Returns (correct, tested), the numbers of test samples, or None if the client has none."""
        score: tuple[int, int] | None = self._call(self._native.score, x)
        return score

    def hessian(self, x: ArrayLike) -> NDArray[Any] | None:
        """Returns the Hessian, shape (dim, dim), or None if it has no closed form."""
        upper = self._call(self._native.hessian, x)
        if upper is None:
            return None
        matrix: NDArray[Any] = np.empty((self.dim, self.dim), upper.dtype)
        rows, columns = np.triu_indices(self.dim)
        matrix[rows, columns] = matrix[columns, rows] = upper
        return matrix


class Problem(Sequence[_ProblemOracle]):
    """The library's own functions of an experiment: an Oracle for each client. gw.run(..., oracles=problem) has the bits of
    the experiment's kind.

    experiment, set, data, test   as for gw.run; a dict needs no algorithm
    dim, start, weights           d; the start point; the weights of the clients in f
    """

    def __init__(self, experiment: Source, *, set: Changes = {}, data: Samples | None = None,
                 test: Samples | None = None) -> None:
        required: dict[str, object] = {f"problem.{key}": "given" for key, samples in (("data", data), ("test", test))
                                       if samples is not None}
        if isinstance(experiment, Mapping) and "algorithm.name" not in dict(flat(experiment)) | dict(flat(set)):
            required["algorithm.name"] = "gd"
        self.experiment = experiment_with(experiment, set, required)
        self._native = _core.Problem(self.experiment._native, data_of(data), data_of(test, "test"))
        self.dim, self.start, self.weights = self._native.dim(), self._native.start(), self._native.weights()
        self._oracles: dict[int, _ProblemOracle] = {}
        self._constants: Constants | None = None

    def __len__(self) -> int:
        return self._native.clients()

    @overload
    def __getitem__(self, k: int) -> _ProblemOracle: ...
    @overload
    def __getitem__(self, k: slice) -> list[_ProblemOracle]: ...

    def __getitem__(self, k: int | slice) -> _ProblemOracle | list[_ProblemOracle]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        if k not in self._oracles:
            self._oracles[k] = _ProblemOracle(self, k)
        return self._oracles[k]

    def __repr__(self) -> str:
        return f"Problem({self.experiment['problem.kind']}: {len(self)} clients, dim {self.dim})"

    @property
    def constants(self) -> Constants:
        """L, L_i and mu. They are estimated if the kind has no closed form for them."""
        if self._constants is None:
            self._constants = Constants(*self._native.constants())
        return self._constants

    @property
    def f_star(self) -> float | None:
        """The smallest value of f, or None if f is not known to be convex, or has no minimum."""
        return self._native.f_star()

    def loss(self, x: ArrayLike) -> float:
        """Returns f(x)."""
        return self._native.loss_and_gradient(np.ascontiguousarray(x, np.float64))[0]

    def gradient(self, x: ArrayLike) -> NDArray[np.float64]:
        """Returns the gradient of f at x."""
        return self._native.loss_and_gradient(np.ascontiguousarray(x, np.float64))[1]


def f_star(experiment: Source, *, set: Changes = {}) -> float | None:
    """The smallest value of f of an experiment, or None: see Problem.f_star."""
    return Problem(experiment, set=set).f_star
