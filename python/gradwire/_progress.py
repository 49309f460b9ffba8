"""What a run shows while it computes."""
from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ._result import Record, Result

if TYPE_CHECKING:
    from ._experiment import Experiment
    from ._types import OnRecord, Path

_LONGEST = 60  # seconds between two lines that are not rewritten
_REDRAW = 0.5  # seconds between two figures


def _is_notebook() -> bool:
    return "IPython" in sys.modules and hasattr(sys.modules["IPython"].get_ipython(), "kernel")


class _Output:
    """An output of a notebook cell that is replaced."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, kind: str, content: str) -> None:
        from IPython.display import display
        if self._handle is None:
            self._handle = display({kind: content}, raw=True, display_id=True)
        else:
            self._handle.update({kind: content}, raw=True)


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


class _Line:
    """A line on progress. A notebook and a terminal rewrite it; elsewhere lines come at growing intervals."""

    def __init__(self) -> None:
        self._output = _Output() if _is_notebook() else None
        self._rewrites = sys.stderr is not None and sys.stderr.isatty()
        self._next, self._interval = 0.0, 1.0
        self._is_shown = False

    def show(self, line: str) -> None:
        self._is_shown = True
        now = time.monotonic()
        if self._output or self._rewrites or now >= self._next:
            self._print(line)
            self._next, self._interval = now + self._interval, min(2 * self._interval, _LONGEST)

    def end(self, line: str) -> None:
        """Replaces the line, if there is one."""
        if self._is_shown and (self._output or self._rewrites):
            self._print(line, "\n")

    def _print(self, line: str, end: str = "") -> None:
        if self._output:
            self._output.show("text/plain", line)
        elif self._rewrites:
            print(f"\r{line}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


class Progress(_Line):
    """The progress of a run, which calls it once the run takes longer than a second."""

    def __init__(self, name: str, rounds: int) -> None:
        super().__init__()
        self._name, self._rounds = name, rounds
        self._first: tuple[float, int] | None = None  # (time, rounds) of the first call

    def __call__(self, rounds: int, row: tuple[Any, ...] | None) -> None:
        now = time.monotonic()
        line = f"{self._name}: round {rounds:,} of {self._rounds:,}"
        if row is not None:
            line += f", loss {Record(*row).loss:.6g}"
        if self._first is None:
            self._first = now, rounds
        elif rounds > self._first[1]:
            line += f", {_duration((self._rounds - rounds) * (now - self._first[0]) / (rounds - self._first[1]))} left"
        self.show(line)


class SweepProgress(_Line):
    """The progress of a sweep, which calls it after each run. It is silent in the first second."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._begin, self._last = name, time.monotonic(), ""

    def __call__(self, ended: int, runs: int) -> None:
        seconds = time.monotonic() - self._begin
        self._last = f"{self._name}: {ended:,} of {runs:,} runs"
        if seconds >= 1:
            self.show(f"{self._last}, {_duration((runs - ended) * seconds / ended)} left" if ended < runs else self._last)

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(self._last)


class Live:
    """The figure of a run in a notebook, drawn again as the run adds rows."""

    def __init__(self, experiment: Experiment) -> None:
        if not _is_notebook():
            raise RuntimeError("live=True draws in a notebook of IPython, and this program is not one; leave it out, or use "
                               "on_record")
        self._output, self._rows, self._next = _Output(), 0, 0.0
        self._scratch = tempfile.TemporaryDirectory()
        self._folder = os.path.join(self._scratch.name, "live")
        os.mkdir(self._folder)
        with open(os.path.join(self._folder, "config.toml"), "w") as file:
            file.write(experiment.toml())
        self._file = open(os.path.join(self._folder, "metrics.csv"), "w")
        self._file.write(",".join(Record._fields) + "\n")

    def then(self, function: OnRecord | None) -> OnRecord:
        def add(record: Record) -> object:
            self._add(record)
            return function is not None and function(record)
        return add

    def _add(self, record: Record) -> None:
        self._file.write(",".join("" if x != x else repr(x) for x in record) + "\n")
        self._rows += 1
        started = time.monotonic()
        if self._rows < 2 or started < self._next:
            return
        self._file.flush()
        self._draw(self._folder)
        now = time.monotonic()
        self._next = now + max(_REDRAW, 10 * (now - started))  # drawing takes a tenth of the time at most

    def end(self, result: Result) -> None:
        if len(result.metrics["loss"]) > 1:
            self._draw(result)

    def close(self) -> None:
        self._file.close()
        self._scratch.cleanup()

    def _draw(self, run: Result | Path) -> None:
        from ._plot import plot
        self._output.show("text/html", plot(run)._repr_html_())


class Shown:
    """Whatever a run shows: its progress, a live figure, or nothing."""

    def __init__(self, experiment: Experiment, progress: bool, live: bool) -> None:
        self.progress = Progress(experiment.name, experiment["run.rounds"]) if progress else None
        self._live = Live(experiment) if live else None
        self._last = "the run did not end"

    def on_record(self, function: OnRecord | None) -> OnRecord | None:
        """A function of a Record: that of the user, after the figure has the record."""
        return function if self._live is None else self._live.then(function)

    def end(self, result: Result) -> Result:
        """Shows the end of the run, and returns the result."""
        self._last = result._line()
        if self._live:
            self._live.end(result)
        return result

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress:
            self.progress.end(self._last)
        if self._live:
            self._live.close()
