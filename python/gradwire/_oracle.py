"""Functions of clients, written in Python."""
from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._types import Batch, Function, Vector

_PAIR, _OUT, _BATCH = range(3)  # as Form in python/core/python_oracle.h
_NO_BATCH = np.empty(0, np.uint32)


class Oracle:
    """The function f_i: R^dim -> R of a client. Derive from it, or use gradwire.oracle().

    A derived class sets `dim` and `samples`, and has loss_and_gradient(). Equal arguments must give equal results. Optional
    methods:

        loss(x, batch) -> loss
        score(x) -> (correct, tested)   the numbers of right predictions and of test samples
        hessian(x) -> matrix            symmetric, or its upper triangle row by row, shape (dim * (dim + 1) / 2,)
        train_locally(y, training) -> loss
                                        the local training of fedavg and its kind: changes y, shape (dim,), in place, and
                                        returns the mean loss at the first y. `training` is a LocalTraining. If it
                                        returns None, the algorithm takes its own steps from the first y.
    """

    dim: int = 0  # derived classes set it
    samples: int = 1
    smoothness: float | None = None  # L_i with |gradient(x) - gradient(y)| <= L_i |x - y|: theory needs no estimate
    start: ArrayLike | None = None  # x of the first round, for runs without x0; the same for all oracles of a run
    thread_safe: bool = False  # True: several threads of a run may call several oracles at the same time

    def loss_and_gradient(self, x: Vector, batch: Batch, out: Vector) -> Any:
        """Returns the mean loss at x, shape (dim,), over the samples `batch` (uint32; empty: all), and writes its
        gradient to `out`, shape (dim,)."""
        raise NotImplementedError("an oracle needs the method loss_and_gradient(self, x, batch, out)")

    def _function(self) -> tuple[Any, int]:
        return self.loss_and_gradient, _BATCH

    def _parts(self) -> tuple[Any, ...]:
        """What the module calls, in the order of OracleParts in python/core/python_oracle.h."""
        if not self.dim:
            raise TypeError(f"{type(self).__name__}: an oracle needs the attribute dim, the length of x")
        function, form = self._function()
        return (function, form, int(self.dim), int(self.samples), getattr(self, "loss", None),
                getattr(self, "score", None), bool(self.thread_safe),
                self._upper_triangle if hasattr(self, "hessian") else None, getattr(self, "train_locally", None), None)

    def _upper_triangle(self, x: Vector) -> Vector:
        matrix = np.asarray(getattr(self, "hessian")(x))
        if matrix.ndim == 1:
            return matrix
        if matrix.shape != (self.dim, self.dim):
            raise ValueError(f"the Hessian has shape {matrix.shape}; it must have shape {(self.dim, self.dim)}")
        return matrix[np.triu_indices(self.dim)]


class _FunctionOracle(Oracle):
    def __init__(self, function: Any, form: int, dim: int, samples: int, smoothness: float | None, start: ArrayLike | None,
                 thread_safe: bool) -> None:
        self.function, self.form, self.dim, self.samples = function, form, dim, samples
        self.smoothness, self.start, self.thread_safe = smoothness, start, thread_safe

    def _function(self) -> tuple[Any, int]:
        return self.function, self.form

    def loss_and_gradient(self, x: Vector, batch: Batch | None = None, out: Vector | None = None) -> tuple[float, Vector]:
        """Returns (loss, gradient). The precision is that of x."""
        x = np.asarray(x)
        is_fp32 = x.dtype == np.float32
        loss, gradient = _core.call_oracle(self, x if is_fp32 else x.astype(np.float64, copy=False),
                                           _NO_BATCH if batch is None else np.asarray(batch, np.uint32), is_fp32)
        if out is not None:
            out[:] = gradient
        return loss, gradient


def _arguments(function: Any) -> int | None:
    """The number of positional arguments without a default, or None if Python does not know."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def oracle(f: Function | Oracle, dim: int, samples: int = 1, *, smoothness: float | None = None,
           start: ArrayLike | None = None, thread_safe: bool = False) -> Oracle:
    """Makes the oracle of a function, in one of three forms:

        f(x) -> (loss, gradient)
        f(x, out) -> loss             writes the gradient to out
        f(x, batch, out) -> loss      the same over the samples `batch` (uint32; empty: all)

    x has shape (dim,), and the type of the run's precision, as gradient and out. `samples` above 1 needs the third form.
    `smoothness` is L_i, for the steps of theory; `start` is the start point of runs without x0.
    """
    if isinstance(f, Oracle):
        return f
    if not callable(f):
        raise TypeError(f"f must be a function, not {type(f).__name__}")
    if int(dim) < 1 or int(samples) < 1:
        raise ValueError("dim and samples must be at least 1")
    count = _arguments(f)
    if count not in (None, 1, 2, 3):
        raise TypeError(f"f has {count} arguments; the forms are f(x), f(x, out) and f(x, batch, out)")
    form = {None: _PAIR, 1: _PAIR, 2: _OUT, 3: _BATCH}[count]
    if samples > 1 and form != _BATCH:
        raise TypeError("a function over several samples has the form f(x, batch, out)")
    return _FunctionOracle(f, form, int(dim), int(samples), smoothness, start, thread_safe)


def check(oracle: Oracle, x: ArrayLike | None = None, *, precision: str = "fp64") -> None:
    """Checks an oracle at x (default: random): shapes and types, equal bits in two calls, and the gradient against
    differences of the loss. Raises ValueError or TypeError that says what is wrong."""
    real = {"fp64": np.float64, "fp32": np.float32}[precision]
    if not isinstance(oracle, Oracle):
        raise TypeError(f"oracle: a {type(oracle).__name__} is not one; write gradwire.oracle(f, dim) for a function, and "
                        "derive classes from gradwire.Oracle")
    if x is None:
        x = np.random.default_rng(1).normal(size=oracle.dim)
    x = np.ascontiguousarray(x, real)

    def compute(at: Vector) -> tuple[float, Vector]:
        loss, gradient = _core.call_oracle(oracle, at, _NO_BATCH, precision == "fp32")
        if not np.isfinite(loss) or not np.isfinite(gradient).all():
            raise ValueError(f"the {'gradient' if np.isfinite(loss) else 'loss'} is not finite")
        return loss, gradient

    loss, gradient = compute(x)
    again = compute(x)
    if loss != again[0] or not (gradient == again[1]).all():
        raise ValueError("two calls with equal arguments give different results; oracles must not draw random numbers or "
                         "keep a state")
    direction = np.random.default_rng(2).normal(size=len(x))
    direction /= np.linalg.norm(direction)
    expected = float(gradient @ direction)
    scale = max(1.0, float(np.linalg.norm(x)))
    step, allowed = (1e-6, 1e-4) if precision == "fp64" else (1e-2, 5e-2)
    ahead, behind = ((x + sign * step * scale * direction).astype(real) for sign in (1, -1))
    difference = (compute(ahead)[0] - compute(behind)[0]) / float(np.linalg.norm(ahead.astype(float) - behind))
    size = max(float(np.linalg.norm(gradient)), abs(difference), 1e-3 * abs(loss), 1e-8)
    if abs(difference - expected) > allowed * size:
        factor = expected / difference if difference else np.inf
        guess = ("; is its sign wrong?" if abs(factor + 1) < 0.01 else
                 f"; it is {factor:.6g} times the right one: a sum in place of a mean?" if _is_near_whole(factor) else "")
        raise ValueError(f"the gradient does not fit the loss: in a random direction the loss changes by {difference:.6g} "
                         f"per unit, but the gradient says {expected:.6g}{guess}")
    if hasattr(oracle, "train_locally"):
        _check_training(oracle, x, bool(gradient.any()))


def _is_near_whole(factor: float) -> bool:
    return bool(np.isfinite(factor)) and factor > 1.5 and abs(factor - round(factor)) < 1e-3 * factor


def _check_training(oracle: Any, x: Vector, moves: bool) -> None:
    y = x.copy()
    loss = oracle.train_locally(y, _core.LocalTraining(steps=1, step_size=1e-3))
    if loss is None and not (y == x).all():
        raise ValueError("train_locally() changed y but returned None; return the mean loss at the first y")
    if loss is None:
        return
    if not np.isfinite(float(loss)) or not np.isfinite(y).all():
        raise ValueError("the loss that train_locally() returned, or its y, is not finite")
    if moves and (y == x).all():
        raise ValueError("train_locally() left y as it was; change it in place: y -= ..., or y[:] = ...")
