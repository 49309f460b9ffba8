"""gradwire: federated learning, simulated and over networks, with the same bits.

    result = gradwire.run("quadratics", set={"run.rounds": 400})
    result.metrics.loss

docs/python.md has examples and rules.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
_core.check_interpreter()
from ._algorithm import Algorithm
from ._compressor import UserCompressor
from ._core import (ClientContext, Compressor, CompressorConstants, LocalTraining, Payload, RandomStream, ServerContext,
                    Tape, Var, __version__)
from ._errors import DataError, ExperimentError, RunError
from ._experiment import Experiment
from ._network import Client, Server
from ._oracle import Oracle, check, oracle
from ._plot import Figure, plot
from ._problem import Constants, Problem, f_star
from ._result import Metrics, Record, Result, Table, read
from ._run import run
from ._sweep import Sweep, sweep

if TYPE_CHECKING:
    from ._keys import DottedKeys, Keys
else:
    def __getattr__(name):
        if name not in ("DottedKeys", "Keys"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import _keys  # only programs with annotations need it, and it takes 2 ms
        return getattr(_keys, name)


def algorithms() -> Table:
    """The algorithms that algorithm.name takes."""
    return Table(_core.algorithms())


def compressors() -> Table:
    """The compressors that algorithm.compressor takes."""
    return Table(_core.compressors())


def problems() -> Table:
    """The kinds that problem.kind takes."""
    return Table(_core.problems())


def keys() -> Table:
    """The keys of experiments, without the parameters of algorithms."""
    return Table(_core.keys())


__all__ = ["Algorithm", "Client", "ClientContext", "Compressor", "CompressorConstants", "Constants", "DataError",
           "DottedKeys", "Experiment", "ExperimentError", "Figure", "Keys", "LocalTraining", "Metrics", "Oracle", "Payload",
           "Problem", "RandomStream", "Record", "Result", "RunError", "Server", "ServerContext", "Sweep", "Table", "Tape",
           "UserCompressor", "Var", "algorithms", "check", "compressors", "f_star", "keys", "oracle", "plot", "problems",
           "read", "run", "sweep"]
