"""Runs."""
from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._algorithm import Algorithm
from ._compressor import UserCompressor
from ._data import check_columns, data_of, source_of
from ._errors import ExperimentError
from ._experiment import Experiment, experiment_with
from ._oracle import Oracle
from ._progress import Shown
from ._result import Record, Result

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._types import Changes, Log, OnRecord, Path, Samples, Source, Vector

LOGGER = logging.getLogger("gradwire")


def on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def log_function(log: Log | None = None) -> Log | None:
    """The function that gets lines of a run: `log`, else that of the logger "gradwire" if it shows notes."""
    return log or (LOGGER.info if LOGGER.isEnabledFor(logging.INFO) else None)


def check_oracles(oracles: Sequence[Oracle]) -> list[Oracle]:
    """The oracles as a list, all of one dimension."""
    if isinstance(oracles, Oracle):
        raise TypeError("oracles: give a list with an oracle for each client, not an oracle")
    oracles = list(oracles)
    if not oracles:
        raise ValueError("oracles: none is given; a run needs those of at least one client")
    for k, oracle in enumerate(oracles):
        if not isinstance(oracle, Oracle):
            raise TypeError(f"oracles: number {k} is a {type(oracle).__name__}; write gradwire.oracle(f, dim) for a function, "
                            "and derive classes from gradwire.Oracle")
        if not oracle.dim:
            raise TypeError(f"oracles: number {k}, a {type(oracle).__name__}, lacks the attribute dim, the length of x")
        if oracle.dim != oracles[0].dim:
            raise ValueError(f"oracles: number {k} has dim {oracle.dim}, and number 0 has {oracles[0].dim}")
    return oracles


def start_of(oracles: Sequence[Oracle] | None) -> Vector | None:
    """The start point that oracles state, or None."""
    starts = [(k, np.ascontiguousarray(oracle.start, np.float64)) for k, oracle in enumerate(oracles or ())
              if oracle.start is not None]
    for k, start in starts:
        if not np.array_equal(start, starts[0][1]):
            raise ValueError(f"oracles: number {k} states another start than number {starts[0][0]}; give x0")
    return starts[0][1] if starts else None


def smoothness_of(oracles: Sequence[Oracle] | None) -> list[float]:
    """The L_i of all oracles, for the steps of theory; empty if one does not state it."""
    stated = [oracle.smoothness for oracle in oracles or () if oracle.smoothness is not None]
    return stated if len(stated) == len(oracles or ()) else []


def on_row(function: OnRecord | None) -> Callable[[tuple[Any, ...]], object] | None:
    """The function of the module for a function of a Record."""
    def call(row: tuple[Any, ...], of_record: OnRecord) -> object:
        return of_record(Record(*row))

    return None if function is None else functools.partial(call, of_record=function)


def parts_of(oracles: Sequence[Oracle] | None, algorithm: Algorithm | None, compressor: UserCompressor | None,
             data: Samples | None, test: Samples | None) -> tuple[list[Oracle] | None, dict[str, Any]]:
    """Checks what a program brings. Returns the oracles as a list, and the keys that say what there is."""
    if algorithm is not None and not isinstance(algorithm, Algorithm):
        raise TypeError(f"algorithm: give an object of a class that derives from gradwire.Algorithm, not "
                        f"{type(algorithm).__name__}; names of algorithms are the key algorithm.name")
    if compressor is not None and not isinstance(compressor, UserCompressor):
        raise TypeError(f"compressor: give an object of a class that derives from gradwire.UserCompressor, not "
                        f"{type(compressor).__name__}; names of compressors are the key algorithm.compressor")
    if oracles is not None and (data is not None or test is not None):
        raise TypeError("oracles= and data= exclude each other: oracles bring their own samples")
    check_columns(data, test)
    required: dict[str, Any] = {}
    checked = None
    if oracles is not None:
        checked = check_oracles(oracles)
        required |= {"problem.kind": "custom", "problem.dim": checked[0].dim, "clients.count": len(checked)}
    if algorithm is not None:
        required["algorithm.name"] = "custom"
    if compressor is not None:
        required["algorithm.compressor"] = f"custom:{compressor.name()}"
    for key, samples in (("problem.data", data), ("problem.test", test)):
        if samples is not None:
            required[key] = source_of(samples) or "given"
    return checked, required


def check_brought(asked: Experiment, oracles: object, algorithm: object, data: object, test: object) -> None:
    """Checks that a program brings what the experiment says that it does."""
    for key, word, brought, how in (("problem.kind", "custom", oracles, "oracles="),
                                    ("algorithm.name", "custom", algorithm, "algorithm="),
                                    ("problem.data", "given", data, "data=(X, y)"), ("problem.test", "given", test, "test=(X, y)")):
        if brought is None and asked.get(key) == word:
            raise ExperimentError(f"{key} is {word!r}: pass {how}")


def run(experiment: Source, *, set: Changes = {}, seed: int | None = None, data: Samples | None = None,
        test: Samples | None = None, oracles: Sequence[Oracle] | None = None, algorithm: Algorithm | None = None,
        compressor: UserCompressor | None = None, x0: ArrayLike | None = None, out: Path | None = None,
        transport: str = "memory", threads: int | None = None, checkpoint_seconds: float = 30.0, fresh: bool = False,
        overwrite: bool = False, on_record: OnRecord | None = None, progress: bool = True, live: bool = False) -> Result:
    """Runs all clients of an experiment in this process, with the bits of `gradwire run`.

    experiment  a file, the name of a shipped experiment, a text, a dict or an Experiment
    set, seed   keys that replace those of the experiment
    data, test  samples (features, labels), or a text in the form of CSV or LIBSVM, which has a line break: the
                experiment's problem.data or problem.test becomes "given". Another text is the value of that key
    oracles     the function of each client: problem.kind becomes "custom"
    algorithm   an Algorithm: algorithm.name becomes "custom"
    compressor  a UserCompressor: algorithm.compressor becomes "custom:NAME"
    x0          the start point, shape (d,); by default that of the oracles, or run.x0
    out         folder for results; a run that was stopped or killed resumes if you call run() again with equal
                arguments. `fresh` starts again; `overwrite` replaces finished results of other settings
    checkpoint_seconds   time from one checkpoint in `out` to the next; 0 for none
    transport   "memory", or "encoded": every message passes through the codec
    threads     their number (default: one per processor); it changes no bit
    on_record   called with a Record after each evaluation; the run ends there if it returns True
    progress    a line on stderr, or in the notebook, once the run takes longer than a second
    live        draws the figure in the notebook during the run, at most twice a second

    Raises ExperimentError or DataError (one line) if it cannot run, RunError if it fails, and what a function of yours
    raised. The attribute `result` of the exception is a Result with what was measured until then: see Result.
    A run that diverges returns: see Result.outcome.
    """
    if transport not in ("memory", "encoded"):
        raise ValueError(f"transport: {transport!r} is not one of memory, encoded; for runs over TCP, use gradwire.Server "
                         "and gradwire.Client")
    oracles, required = parts_of(oracles, algorithm, compressor, data, test)
    asked = experiment_with(experiment, dict(set) | ({} if seed is None else {"seed": seed}), required)
    if x0 is None and asked["run.x0"] == "zeros":
        x0 = start_of(oracles)
    check_brought(asked, oracles, algorithm, data, test)
    failed: list[_core.TrainResult] = []
    with Shown(asked, progress, live) as shown:
        try:
            native = _core.run(
                experiment=asked._native, oracles=oracles, algorithm=algorithm, compressor=compressor, data=data_of(data),
                test=data_of(test, "test"), x0=None if x0 is None else np.ascontiguousarray(x0, np.float64),
                smoothness=smoothness_of(oracles), out="" if out is None else os.fspath(out), transport=transport,
                threads=threads or 0, checkpoint_seconds=checkpoint_seconds, fresh=fresh, overwrite=overwrite,
                on_record=on_row(shown.on_record(on_record)), progress=shown.progress, log=log_function(),
                on_failure=failed.append, is_main_thread=on_main_thread())
        except BaseException as error:
            if failed:
                error.result = Result(failed[0], asked)  # type: ignore[attr-defined]
            raise
        result = Result(native, asked)
        result._name = None if algorithm is None else algorithm.name()
        return shown.end(result)
