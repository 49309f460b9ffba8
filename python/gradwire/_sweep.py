"""Sweeps: runs with all combinations of some values."""
from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _core
from ._data import data_of
from ._errors import RunError
from ._experiment import experiment_with, text_of, value_of
from ._progress import SweepProgress
from ._result import Result, Table, html_table, read
from ._run import check_brought, log_function, on_main_thread, parts_of, smoothness_of, start_of

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike

    from ._algorithm import Algorithm
    from ._compressor import UserCompressor
    from ._oracle import Oracle
    from ._plot import Figure
    from ._types import Changes, Path, Samples, Source


class _Scratch:
    """A temporary folder that lives as long as the object. Unlike tempfile, it does not warn at its end."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class Sweep(Sequence[Result]):
    """The results of a sweep, in the order of its grid."""

    def __init__(self, made: dict[str, Any], scratch: _Scratch | None) -> None:
        self._scratch = scratch  # a temporary folder lives as long as the sweep
        self.folder: str = made["folder"]
        self.failed: list[str] = made["failed"]  # one line for each run that failed
        self.values = [{key: value_of(text) for key, text in values} for _, values in made["runs"]]
        self._folders: list[str] = [folder for folder, _ in made["runs"]]
        self._results: dict[int, Result] = {}
        self._best: list[tuple[Any, ...]] = made["best"]
        self._text: str = made["table"]

    def __len__(self) -> int:
        return len(self._folders)

    @overload
    def __getitem__(self, k: int) -> Result: ...

    @overload
    def __getitem__(self, k: slice) -> list[Result]: ...

    def __getitem__(self, k: int | slice) -> Result | list[Result]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = range(len(self))[k]
        if k not in self._results:
            self._results[k] = read(self._folders[k])
        return self._results[k]

    @property
    def table(self) -> Table:
        """All rows of all runs: a column for each key that varies, then the metrics."""
        there = [k for k in range(len(self)) if os.path.exists(self._folders[k])]
        lengths = [len(self[k].metrics["round"]) for k in there]
        columns = {key: np.repeat(np.array([self.values[k][key] for k in there]), lengths)
                   for key in (self.values[0] if self.values else ())}
        for name in _core.TrainResult.columns():
            columns[name] = np.concatenate([self[k].metrics[name] for k in there]) if there else np.empty(0)
        return Table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a DataFrame."""
        return self.table.to_pandas()

    def best(self) -> Table:
        """The best values of each algorithm, as in best.csv."""
        names = ("algorithm", "tuned", "median", "low", "high", "runs")
        columns = dict(zip(names, zip(*self._best))) if self._best else dict.fromkeys(names, ())
        return Table({name: list(column) for name, column in columns.items()})

    def plot(self, **options: Any) -> Figure:
        from ._plot import plot
        return plot(self, **options)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        best = self.best()
        if not any(best["algorithm"]):  # the sweep compares none
            del best["algorithm"]
        return html_table(best, best._rows()) + self.plot()._repr_html_()


def sweep(experiment: Source, grid: Mapping[str, Iterable[object]] = {}, *, set: Changes = {}, data: Samples | None = None,
          test: Samples | None = None, oracles: Sequence[Oracle] | None = None, algorithm: Algorithm | None = None,
          compressor: UserCompressor | None = None, x0: ArrayLike | None = None, criterion: str = "", budget: str = "",
          target: float | None = None, tune: Sequence[str] = (), out: Path | None = None, jobs: int | None = None,
          fresh: bool = False, progress: bool = True) -> Sweep:
    """Does the runs of all combinations of the values of `grid`, a dict of keys and lists. The last key changes fastest.

    `out` keeps the results, and a later call with the same folder finds them; by default they live as long as the Sweep.
    `jobs` is the number of runs at a time (default: one per processor). A run has the bits of `gradwire run`. A sweep that
    takes longer than a second shows how many runs have ended, unless `progress` is False.

    `criterion`, `budget`, `target` and `tune` say how the best runs are found, as in the section [sweep] of a file: a column
    that should be small (default: grad_norm_sq), the rows that count ("bits_up = 1e7"), a value to reach at the lowest cost,
    and the keys whose best values are found (default: algorithm.step_size).

    `data`, `test`, `oracles`, `algorithm`, `compressor` and `x0` are those of gradwire.run(), and all runs share them. With
    Python functions the runs go one at a time. What such a function raises ends the sweep. A grid may compare an algorithm or
    a compressor of yours with others, as {"algorithm.name": ["custom", "ef21"]}. A folder whose runs have other functions,
    samples, start points or names of your algorithm is refused: use another `out`, or `fresh`.
    """
    oracles, required = parts_of(oracles, algorithm, compressor, data, test)
    texts = []
    for key, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise TypeError(f"grid: {key}: give a list of values, not {values!r}")
        texts.append((key, [text_of(key, value) for value in values]))
    scratch = None
    if out is None:
        scratch = _Scratch()
        out = os.path.join(scratch.name, "sweep")
    asked = experiment_with(experiment, set, required)
    check_brought(asked, oracles, algorithm, data, test)
    if x0 is None and asked["run.x0"] == "zeros" and "run.x0" not in grid:
        x0 = start_of(oracles)
    with SweepProgress(asked.name) as shown:
        made = _core.sweep(experiment=asked._native, grid=texts, oracles=oracles, algorithm=algorithm, compressor=compressor,
                           data=data_of(data), test=data_of(test, "test"),
                           x0=None if x0 is None else np.ascontiguousarray(x0, np.float64), smoothness=smoothness_of(oracles),
                           criterion=criterion, budget=budget, target=target, tune=list(tune), out=os.fspath(out),
                           jobs=jobs or 0, fresh=fresh,
                           log=log_function(), on_run=shown if progress else None, is_main_thread=on_main_thread())
    failed = made["failed"]
    if failed and len(failed) == len(made["runs"]):
        raise RunError(f"all {len(failed)} runs failed, the first one so: {failed[0]}")
    if failed:
        warnings.warn(f"{len(failed)} of {len(made['runs'])} runs failed, the first one so: {failed[0]}", stacklevel=2)
    return Sweep(made, scratch)
