"""Results of runs."""
import html
import json
import math
import os
import pathlib
import tempfile
from typing import NamedTuple

import numpy as np

from . import _core
from ._experiment import Experiment


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


class Columns(dict):
    """Columns by their names, also as attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no column {name!r}; there are {', '.join(self)}") from None

    def to_pandas(self):
        import pandas
        return pandas.DataFrame(dict(self))


class Metrics(Columns):
    """The columns of metrics.csv as float64 arrays. Empty cells are nan."""


class Table(Columns):
    """A table whose columns are arrays."""

    def _rows(self):
        return list(zip(*self.values()))

    def __repr__(self):
        rows = [tuple(self)] + [tuple(_cell(x) for x in row) for row in self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self):
        return html_table(self, self._rows())


def _cell(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def html_table(names, rows):
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(x))}</td>" for x in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


class Result:
    """What a run measured."""

    def __init__(self, native, experiment=None):
        self._native = native
        self.experiment = experiment or Experiment(native.experiment())  # as asked
        self.resolved = Experiment(native.resolved())  # every step size is a number
        self.resolved._file = self.experiment._file
        self.metrics = Metrics(native.metrics())
        model = native.model()
        self.model = model.astype(np.float32) if self.resolved["precision"] == "fp32" else model  # shape (d,)
        self.outcome = native.outcome()  # finished, reached_target, stopped, diverged, stalled or running
        self.trouble = native.trouble()  # one line on why the run diverged or stopped
        self.rounds = native.rounds()
        self.seconds = native.seconds()
        self.warnings = native.warnings()

    @property
    def summary(self):
        """The members of summary.json."""
        return json.loads(self._native.summary() or "{}")

    def to_pandas(self):
        """The metrics as a DataFrame."""
        return self.metrics.to_pandas()

    def save(self, folder, *, overwrite=False):
        """Writes the folder that gradwire run writes."""
        self._native.save(os.fspath(folder), overwrite)

    def plot(self, **options):
        """The figure of gradwire.plot()."""
        from ._plot import plot
        return plot(self, **options)

    def __repr__(self):
        return f"Result({self._line()})"

    def _line(self):
        loss = self.metrics["loss"]
        return (f"{self.resolved.name}: {self.outcome} after {self.rounds:,} rounds in {self.seconds:.3g} s" +
                (f", loss {loss[-1]:.6g}" if len(loss) else ""))

    def _repr_html_(self):
        shown = {name: column[-1] for name, column in self.metrics.items() if len(column) and not math.isnan(column[-1])}
        figure = self.plot().svg if len(self.metrics["loss"]) > 1 else ""
        return f"<p>{html.escape(self._line())}</p>" + html_table(shown, [shown.values()]) + figure

    def __reduce__(self):
        with tempfile.TemporaryDirectory() as scratch:
            self._native.save(scratch + "/result", True)
            files = {file.name: file.read_bytes() for file in pathlib.Path(scratch, "result").iterdir()
                     if file.suffix in (".toml", ".csv", ".bin", ".json")}
        return _unpickle, (files, self.experiment, self.trouble)


def _unpickle(files, experiment, trouble):
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in files.items():
            pathlib.Path(scratch, name).write_bytes(content)
        result = Result(_core.TrainResult.read(scratch), experiment)
    result.trouble = trouble
    return result


def read(folder):
    """Reads a folder of results: of gradwire run, of Result.save(), or of a server. `experiment` is then that of
    `resolved`. The outcome is "running", and the model empty, before a server's run is over."""
    return Result(_core.TrainResult.read(os.fspath(folder)))
