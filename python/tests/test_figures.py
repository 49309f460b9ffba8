"""gw.plot, and what notebooks show."""
import base64
import csv
import html.parser
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import gradwire as gw
import numpy as np
import pytest
from conftest import SMALL, run_functions
from test_algorithm import MyEF21


@pytest.fixture(scope="module")
def runs():
    return gw.run(SMALL), gw.run(SMALL, set={"algorithm.name": "gd", "algorithm.compressor": "identity"})


@pytest.fixture
def pyplot(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


def test_a_diverged_run_is_named_and_drawn(runs, pyplot, tmp_path):
    diverged = gw.run(SMALL, set={"algorithm.name": "gd", "algorithm.compressor": "identity", "algorithm.step_size": 1000})
    assert diverged.outcome == "diverged" and "try a smaller step" in repr(diverged) or "step_size" in repr(diverged)
    figure = gw.plot([diverged, runs[0]], y="loss")
    assert "(diverged)" in figure.svg
    axes, = figure.axes()
    assert all(np.isfinite(axes.get_ylim())) and any("(diverged)" in line.get_label() for line in axes.get_lines())
    axes.figure.savefig(tmp_path / "a.png")
    assert axes.get_ylim()[1] < 1e9


def test_an_algorithm_of_the_program_has_its_name(runs):
    mine = gw.run(SMALL, algorithm=MyEF21())
    svg = gw.plot(mine, runs[1]).svg
    assert "MyEF21" in svg and "custom" not in svg and "GD" in svg


def test_errors_have_the_names_of_arguments(runs, tmp_path):
    with pytest.raises(gw.ExperimentError, match="^x=bit: unknown column 'bit'"):
        gw.plot(*runs, x="bit")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        gw.plot(*runs).save(tmp_path / "nowhere" / "a.svg")
    (tmp_path / "mine.py").write_text("import gradwire as gw\n")
    with pytest.raises(gw.ExperimentError, match="mine.py: exists and was not written by gradwire"):
        gw.plot(*runs).save(tmp_path / "mine.svg")
    with pytest.raises(KeyError, match="no column 'bits'; there are round, loss"):
        runs[0].metrics["bits"]
    with pytest.raises(KeyError, match="did you mean run.rounds"):
        runs[0].experiment["rounds"]


def test_save_writes_the_format_of_the_name(runs, tmp_path):
    figure = gw.plot(*runs, x="bits")
    starts = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "tex": b"%", "csv": b"panel,curve",
              "py": b"#!/usr/bin/env python3"}
    for ending, start in starts.items():
        if ending in ("pdf", "png") and not (shutil.which("rsvg-convert") or shutil.which("inkscape")):
            pytest.importorskip("matplotlib")
        figure.save(tmp_path / f"a.{ending}")
        assert start in (tmp_path / f"a.{ending}").read_bytes()[:200], ending
    assert (tmp_path / "a.svg").read_text() == figure.svg == figure._repr_svg_()
    with pytest.raises(gw.ExperimentError, match="must end in"):
        figure.save(tmp_path / "a.jpg")


def test_a_script_of_results_in_memory_runs_without_them(runs, tmp_path, pyplot):
    figure = gw.plot(*runs, y="loss", x="rounds")
    figure.save(tmp_path / "a.svg")
    expected = [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes()[0].lines]
    del figure
    done = subprocess.run([sys.executable, tmp_path / "a.py", tmp_path / "b.png"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    for (x, y), run in zip(expected, runs):
        np.testing.assert_array_equal(x, run.metrics.round)
        np.testing.assert_array_equal(y, run.metrics.loss)


def test_a_script_of_folders_reads_them(runs, tmp_path, pyplot):
    runs[0].save(tmp_path / "run")
    gw.plot(tmp_path / "run").save(tmp_path / "a.py")
    assert "run/metrics.csv" in (tmp_path / "a.py").read_text()


def test_axes_draws_the_same_by_matplotlib(runs, tmp_path, pyplot):
    figure = gw.plot(*runs, panels=["grad_norm_sq:bits", "loss:rounds"], labels=["one", "the other"])
    axes = figure.axes()
    assert len(axes) == 2 and axes[0].get_yscale() == "log" and axes[0].get_xlabel() != axes[1].get_xlabel()
    figure.save(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        points = [row for row in csv.DictReader(file) if row["curve"] == "the other" and row["panel"] == "loss:rounds"]
    line = next(line for line in axes[1].lines if line.get_label() == "the other")
    drawn = dict(zip(line.get_xdata(), line.get_ydata()))
    assert len(points) > 1
    for point in points:
        assert drawn[float(point["x"])] == pytest.approx(float(point["y"]), rel=1e-4)
    mine = pyplot.subplots(1, 2)[1]
    assert figure.axes(mine) == list(mine) and [len(ax.lines) for ax in mine] == [2, 2]
    assert [text.get_text() for text in mine[0].get_legend().get_texts()] == ["one", "the other"]
    single = pyplot.subplots()[1]
    assert gw.plot(*runs, y="loss").axes(single) == [single]
    with pytest.raises(ValueError, match="2 panels, but you gave 1"):
        figure.axes(single)


def test_figures_are_png_without_other_programs(runs, tmp_path, pyplot, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    gw.plot(*runs).save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_gap_and_panels_by_a_key(runs, tmp_path):
    gw.plot(*runs, y="gap", f_star=-5).save(tmp_path / "a.csv")
    gw.plot(*runs, y="loss").save(tmp_path / "b.csv")
    one, other = (csv.DictReader(open(tmp_path / name, newline="")) for name in ("a.csv", "b.csv"))
    assert float(next(one)["y"]) == pytest.approx(float(next(other)["y"]) + 5, rel=1e-3)
    figure = gw.plot(*runs, gw.run(SMALL, set={"problem.dim": 20}), y="loss", by="problem.dim")
    assert "dim = 12" in figure.svg and "dim = 20" in figure.svg
    with pytest.raises(gw.ExperimentError, match="problem.dim"):
        gw.plot(*runs, by="problem.dym")


def test_the_gap_of_functions_in_python(least_squares, tmp_path):
    result = run_functions(least_squares[2])
    gw.plot(result, y="gap", x="rounds").save(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        first = next(csv.DictReader(file))
    loss = result.metrics.loss
    assert float(first["y"]) == pytest.approx(loss[0] - loss.min(), rel=1e-4)


class Balanced(html.parser.HTMLParser):
    """Counts elements, and checks that each but images is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count = [], {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "img":
            self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_notebooks_show_results_sweeps_and_tables(runs):
    assert Balanced(runs[0]._repr_html_()).count["img"] == 1
    assert "img" not in Balanced(gw.run(SMALL, set={"run.rounds": 0})._repr_html_()).count
    sweep = gw.sweep(SMALL, {"seed": [1, 2]})
    shown = Balanced(sweep._repr_html_())
    assert shown.count["img"] == 1 and shown.count["table"] == 1
    for table in (gw.algorithms(), gw.compressors(), gw.keys(), sweep.table, sweep.best()):
        assert Balanced(table._repr_html_()).count["tr"] == 1 + len(table._rows())


def test_a_figure_is_an_image(runs):
    figure = gw.plot(*runs)
    xml.etree.ElementTree.fromstring(figure._repr_svg_())
    image = re.search('src="data:image/svg.xml;base64,(.*)"', figure._repr_html_())[1]
    assert base64.b64decode(image).decode() == figure.svg
