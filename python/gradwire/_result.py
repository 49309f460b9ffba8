"""Results of runs."""
from __future__ import annotations

import html
import json
import math
import os
import pathlib
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, TypeVar

import numpy as np

from . import _core
from ._errors import ExperimentError, with_arguments
from ._experiment import Experiment

if TYPE_CHECKING:
    import pandas

    from ._plot import Figure
    from ._types import Floats, Path, Vector

_Column = TypeVar("_Column")


class Record(NamedTuple):
    """A row of the metrics, at x^round. Cells that are empty in metrics.csv are nan."""

    round: int
    loss: float
    grad_norm_sq: float
    accuracy: float
    bits_up: float
    bits_down: float
    bytes_up: int
    bytes_down: int
    grad_calls: float
    replies: int
    seconds: float
    bits_up_paper: float
    bits_down_paper: float


class Columns(Dict[str, _Column]):
    """Columns by their names, also as attributes."""

    def __getattr__(self, name: str) -> _Column:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __missing__(self, name: str) -> _Column:
        raise KeyError(f"no column {name!r}; there are {', '.join(self)}")

    def to_pandas(self) -> pandas.DataFrame:
        import pandas
        return pandas.DataFrame(dict(self))


class Metrics(Columns["Floats"]):
    """The columns of metrics.csv as float64 arrays. Empty cells are nan."""

    round: Floats
    loss: Floats
    grad_norm_sq: Floats
    accuracy: Floats
    bits_up: Floats
    bits_down: Floats
    bytes_up: Floats
    bytes_down: Floats
    grad_calls: Floats
    replies: Floats
    seconds: Floats
    bits_up_paper: Floats
    bits_down_paper: Floats
    sim_seconds: Floats
    lyapunov: Floats
    lyapunov_bound: Floats
    evaluation_bytes_up: Floats
    evaluation_bytes_down: Floats


class Table(Columns[Any]):
    """A table whose columns are arrays."""

    def _rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.values()))

    def __repr__(self) -> str:
        rows = [tuple(self)] + [tuple(_cell(x) for x in row) for row in self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        return html_table(self, self._rows())


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def html_table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(x))}</td>" for x in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


class Result:
    """What a run measured. If an exception ended gw.run, its attribute `result` is one: the outcome is "stopped", `metrics`
    has the rows until then, and `model` is x of the last whole round, or empty if the rounds had not begun."""

    def __init__(self, native: _core.TrainResult, experiment: Experiment | None = None) -> None:
        self._native = native
        self.experiment = experiment or Experiment(native.experiment())  # as asked
        self.resolved = Experiment(native.resolved())  # every step size is a number
        self.resolved._file = self.experiment._file
        self.metrics = Metrics(native.metrics())
        model = native.model()
        self.model: Vector = model.astype(np.float32) if self.resolved["precision"] == "fp32" else model  # shape (d,)
        self.outcome = native.outcome()  # finished, reached_target, stopped, diverged, stalled or running
        self.trouble = native.trouble()  # one line on why the run diverged or stopped
        self.rounds = native.rounds()
        self.seconds = native.seconds()
        self.warnings = native.warnings()
        self._name: str | None = None  # of an algorithm of the program, for figures

    @property
    def summary(self) -> dict[str, Any]:
        """The members of summary.json."""
        members: dict[str, Any] = json.loads(self._native.summary() or "{}")
        return members

    def to_pandas(self) -> pandas.DataFrame:
        """The metrics as a DataFrame."""
        return self.metrics.to_pandas()

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Writes the folder that gradwire run writes."""
        try:
            self._native.save(os.fspath(folder), overwrite)
        except ExperimentError as error:
            raise with_arguments(error) from None

    def plot(self, **options: Any) -> Figure:
        """The figure of gradwire.plot()."""
        from ._plot import plot
        return plot(self, **options)

    def __repr__(self) -> str:
        return "\n  ".join([f"Result({self._line()})", *self._troubles()])

    def _troubles(self) -> list[str]:
        """Why the run diverged or stopped, and its warnings."""
        return ([self.trouble] if self.trouble else []) + [f"warning: {line}" for line in self.warnings]

    def _line(self) -> str:
        loss = self.metrics["loss"]
        return (f"{self.resolved.name}: {self.outcome} after {self.rounds:,} rounds in {self.seconds:.3g} s" +
                (f", loss {loss[-1]:.6g}" if len(loss) else ""))

    def _repr_html_(self) -> str:
        names = [name for name in Record._fields if not name.endswith("_paper")]
        last = {name: self.metrics[name][-1] for name in names if len(self.metrics[name])}
        shown = {name: value for name, value in last.items() if not math.isnan(value)}
        figure = self.plot()._repr_html_() if len(self.metrics["loss"]) > 1 else ""
        lines = "<br>".join(html.escape(line) for line in [self._line(), *self._troubles()])
        return f"<p>{lines}</p>" + html_table(shown, [shown.values()]) + figure

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory() as scratch:
            self._native.save(scratch + "/result", True)
            files = {file.name: file.read_bytes() for file in pathlib.Path(scratch, "result").iterdir()
                     if file.suffix in (".toml", ".csv", ".bin", ".json")}
        return _unpickle, (files, self.experiment, self.trouble)


def _unpickle(files: dict[str, bytes], experiment: Experiment, trouble: str) -> Result:
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in files.items():
            pathlib.Path(scratch, name).write_bytes(content)
        result = Result(_core.TrainResult.read(scratch), experiment)
    result.trouble = trouble
    return result


def read(folder: Path) -> Result:
    """Reads a folder of results: of gradwire run, of Result.save(), or of a server. `experiment` is then that of
    `resolved`. The outcome is "running", and the model empty, before the run is over."""
    return Result(_core.TrainResult.read(os.fspath(folder)))
