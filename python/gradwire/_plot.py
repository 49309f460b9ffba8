"""Figures."""
from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._result import Result
from ._sweep import Sweep

if TYPE_CHECKING:
    from ._types import Path


class Figure:
    """A figure of results, as `gradwire plot` draws it. Notebooks show it."""

    def __init__(self, folders: list[str], options: tuple[Any, ...], keep: object) -> None:
        self._folders, self._options, self._keep = folders, options, keep
        with tempfile.TemporaryDirectory() as scratch:
            file = os.path.join(scratch, "figure.svg")
            self._draw(file)
            self.svg = pathlib.Path(file).read_text()

    def _draw(self, file: str) -> None:
        _core.plot(self._folders, file, *self._options)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: Path) -> None:
        """Writes an .svg (with a Matplotlib script next to it), .pdf, .png, .tex or .csv."""
        self._draw(os.fspath(file))


def plot(*runs: Result | Sweep | Path, x: str | None = None, y: str | None = None, panels: Sequence[str] = (),
         labels: Sequence[str] | None = None, band: str | None = None, width: str | None = None,
         f_star: float | None = None) -> Figure:
    """Draws results: Results, Sweeps, or folders of them.

    x and y are columns, as "bits" and "grad_norm_sq"; `panels` are texts "Y:X" in place of both. `labels` are texts for
    the runs, one each. `band` of several seeds is "quartiles", "range" or "none". `f_star` is f* of all runs.
    Columns that are not given are chosen from the results.
    """
    if not runs:
        raise TypeError("plot() needs at least one result")
    scratch, folders = tempfile.TemporaryDirectory(), []
    for k, run in enumerate(runs):
        if isinstance(run, Result):
            folders.append(os.path.join(scratch.name, f"{k}-{run.resolved.name}"))
            run.save(folders[-1])
        else:
            folders.append(run.folder if isinstance(run, Sweep) else os.fspath(run))
    if labels is not None and len(labels) != len(runs):
        raise ValueError(f"labels: {len(labels)} texts for {len(runs)} runs")
    options = (x or "", y or "", list(panels), list(zip(folders, labels or ())), band or "", width or "", f_star)
    return Figure(folders, options, (scratch, runs))
