"""The cells of the tutorial run, without a notebook server."""
import ast
import json

import pytest
from conftest import ROOT

CELLS = json.loads((ROOT / "docs/tutorials/python.ipynb").read_text())["cells"]


def test_the_notebook_has_no_outputs():
    for cell in CELLS:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The variables after all cells."""
    patch = pytest.MonkeyPatch()
    patch.chdir(tmp_path_factory.mktemp("tutorial"))
    found = {"__name__": "__main__", "shown": []}
    for number, cell in enumerate(CELLS):
        if cell["cell_type"] != "code":
            continue
        code = ast.parse("".join(cell["source"]))
        last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        exec(compile(code, f"cell {number}", "exec"), found)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), found)
            show = getattr(value, "_repr_html_", None)
            if show:
                found["shown"].append(show())
    yield found
    patch.undo()


def test_every_cell_runs_and_shows_something(names):
    assert len(names["shown"]) >= 4
    assert all("data:image/svg+xml" in text for text in names["shown"])


def test_the_text_is_true(names):
    gd, ef21, tuned = names["gd"], names["ef21"], names["tuned"]

    def needed(run, level, column):
        return run.metrics[column][(run.metrics.loss <= level).argmax()]
    level = ef21.metrics.loss[-1]
    assert needed(gd, level, "round") < 300 and needed(gd, level, "bits_up") < ef21.metrics.bits_up[-1]
    assert list(names["sweep"].best().tuned) == ["algorithm.step_size = theory*16"]
    assert len(names["sweep"]) == 12 and names["sweep"].failed == []
    level = gd.metrics.loss[-1]
    assert 0 < needed(tuned, level, "bits_up") < gd.metrics.bits_up[-1] / 2
    assert gd.resolved["clients.count"] == 10 and gd.model.shape == (50,)
    assert names["exact"].outcome == "reached_target"
    assert abs(names["exact"].model - range(10)).max() < 0.5
    assert names["naive"].metrics.grad_norm_sq[-1] > 1e-4 > 1e-20 > names["mine"].metrics.grad_norm_sq[-1]
