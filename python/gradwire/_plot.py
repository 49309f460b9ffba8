"""Figures."""
from __future__ import annotations

import base64
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import ExperimentError, with_arguments
from ._result import Result
from ._sweep import Sweep

if TYPE_CHECKING:
    from ._types import Path


class Figure:
    """A figure of results, as `gradwire plot` draws it. Notebooks show it.

    svg   its text
    """

    def __init__(self, folders: list[str], options: tuple[Any, ...], embeds: bool, keep: object) -> None:
        self._folders, self._options, self._embeds, self._keep = folders, options, embeds, keep
        with tempfile.TemporaryDirectory() as scratch:
            file = os.path.join(scratch, "figure.svg")
            self._draw(file, embeds=True)
            self.svg = pathlib.Path(file).read_text()

    def _draw(self, file: str, embeds: bool) -> None:
        folder = os.path.dirname(file)
        if folder and not os.path.isdir(folder):
            raise FileNotFoundError(f"there is no folder {folder}")
        try:
            _core.plot(self._folders, file, embeds, *self._options)
        except ExperimentError as error:  # with the options of the program
            raise with_arguments(error) from None

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # As an image: the names in the text of one figure would mean parts of another on the same page.
        return f'<img alt="figure" src="data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}">'

    def save(self, file: Path) -> None:
        """Writes an .svg, .pdf, .png, .tex or .csv, or a .py: a Matplotlib script. An .svg has its script next to it. Files
        that gradwire has not written are not replaced.

        A .pdf and a .png need rsvg-convert, Inkscape or Matplotlib.
        """
        file = os.fspath(file)
        if file.endswith((".pdf", ".png")) and not (shutil.which("rsvg-convert") or shutil.which("inkscape")):
            self._matplotlib()[0].savefig(file, dpi=300, bbox_inches="tight")
        else:
            self._draw(file, self._embeds)

    def axes(self, ax: Any = None) -> list[Any]:
        """Draws the same by Matplotlib, and returns the axes of the panels. `ax` is your Axes, or one for each panel;
        by default they are those of a new figure of pyplot."""
        if ax is None:
            drawn: list[Any] = self._matplotlib()[1]
            return drawn
        axes = [ax] if hasattr(ax, "plot") else list(getattr(ax, "flat", ax))
        script = self._script()
        if len(axes) != len(script["PANELS"]):
            raise ValueError(f"ax: the figure has {len(script['PANELS'])} panels, but you gave {len(axes)} axes")
        script["draw"](axes)
        axes[0].legend(title=script["NOTE"])
        return axes

    def _matplotlib(self) -> Any:
        import matplotlib.pyplot as plt
        script = self._script()
        with plt.rc_context(script["STYLE"]):
            return script["new_figure"](plt)

    def _script(self) -> dict[str, Any]:
        """The names of the Matplotlib script."""
        with tempfile.TemporaryDirectory() as scratch:
            file = os.path.join(scratch, "figure.py")
            self._draw(file, embeds=True)
            names = {"__name__": "gradwire.figure", "__file__": file}
            exec(compile(pathlib.Path(file).read_text(), file, "exec"), names)
            return names


def plot(*runs: Result | Sweep | Path | Sequence[Result | Path], x: str | None = None, y: str | None = None,
         panels: Iterable[str] = (), by: str | None = None, labels: Sequence[str] | None = None, band: str | None = None,
         width: str | None = None, f_star: float | None = None, all: bool = False) -> Figure:
    """Draws results: Results, Sweeps (their best runs), or folders of them, or lists of these.

    x, y    columns, as "bits" and "grad_norm_sq"; "gap" is f(x) - f*
    panels  texts "Y:X" in place of both
    by      a key, as "problem.data": panels for each of its values
    labels  a text for each of the runs
    band    of several seeds: "quartiles", "range" or "none"
    width   of the page, as "234pt" or "85mm"
    f_star  f* of all runs; by default it is computed if a panel has the gap
    all     draws all runs of a sweep

    Columns that are not given are chosen from the results.
    """
    flat: list[Any] = [run for each in runs for run in (each if isinstance(each, (list, tuple)) else [each])]
    if not flat:
        raise TypeError("plot() needs at least one result")
    scratch, folders = tempfile.TemporaryDirectory(), []
    for k, run in enumerate(flat):
        if isinstance(run, Result):
            folders.append(os.path.join(scratch.name, f"{k}-{run.resolved.name}"))
            run.save(folders[-1])
        else:
            folders.append(run.folder if isinstance(run, Sweep) else os.fspath(run))
    if labels is not None and len(labels) != len(flat):
        raise ValueError(f"labels: {len(labels)} texts for {len(flat)} runs")
    if labels is None:  # "custom" is no name for an algorithm of the program
        names = [run._name if isinstance(run, Result) else None for run in flat]
        own = {folder: name for folder, name in zip(folders, names) if name and names.count(name) == 1}
        folders_and_labels = list(own.items())
    else:
        folders_and_labels = list(zip(folders, labels))
    options = (x or "", y or "", list(panels), folders_and_labels, band or "", width or "", f_star, by or "", all)
    # A script reads the folders of results, unless they end with this process.
    embeds = any(isinstance(run, (Result, Sweep)) for run in flat)
    return Figure(folders, options, embeds, (scratch, flat))
