"""What runs show while they compute."""
import contextlib
import os
import re
import sys
import time

import gradwire as gw
import pytest
from conftest import SMALL, run_functions

SLOW = {"algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 130, "evaluate_every": 50}}


def slow(x, out):
    time.sleep(0.01)
    out[:] = x - 1
    return float(out @ out) / 2


@contextlib.contextmanager
def notebook(monkeypatch, tmp_path):
    """A shell of IPython that is like that of a notebook. Yields its outputs."""
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()
    shell.display_pub, shell.kernel = CapturingDisplayPublisher(), object()
    try:
        yield shell.display_pub.outputs
    finally:
        InteractiveShell.clear_instance()
        sys.modules["builtins"].__dict__.pop("get_ipython", None)


def test_a_run_of_more_than_a_second_shows_a_line(capsys):
    run_functions([slow], dim=2, experiment=SLOW)
    shown = capsys.readouterr().err
    assert re.fullmatch(r"\S+: round \d+ of 130, loss [-\d.e+]+\n", shown), shown
    run_functions([slow], dim=2, experiment=SLOW, set={"run.evaluate_every": 0})
    assert re.fullmatch(r"\S+: round \d+ of 130\n", capsys.readouterr().err), "also between evaluations"
    run_functions([slow], dim=2, experiment=SLOW, progress=False)
    gw.run(SMALL)
    assert capsys.readouterr().err == ""


def test_a_terminal_rewrites_the_line(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_functions([slow], dim=2, experiment=SLOW, set={"run.rounds": 230})
    lines = capsys.readouterr().err.split("\r")
    assert len(lines) == 4 and lines[0] == "" and re.search(r"\d s left", lines[2])
    assert "finished after 230 rounds" in lines[3] and lines[3].endswith("\n")


def test_an_exception_ends_the_line(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    started = time.monotonic()

    def fails(x, out):
        if time.monotonic() > started + 1.2:
            raise ArithmeticError
        return slow(x, out)
    with pytest.raises(ArithmeticError):
        run_functions([fails], dim=2, experiment=SLOW, set={"run.rounds": 1000})
    assert capsys.readouterr().err.endswith("did not end\x1b[K\n")


def test_a_notebook_replaces_the_line(capsys, monkeypatch, tmp_path):
    with notebook(monkeypatch, tmp_path) as outputs:
        run_functions([slow], dim=2, experiment=SLOW)
    texts = [output["data"]["text/plain"] for output in outputs]
    assert re.search("round .* of 130", texts[0]) and "finished after 130 rounds" in texts[-1]
    assert [output["update"] for output in outputs] == [False, True]
    assert outputs[0]["transient"] == outputs[1]["transient"]
    assert capsys.readouterr().err == ""


def test_a_sweep_of_more_than_a_second_shows_its_runs(capsys, monkeypatch):
    grid = {"seed": [1, 2, 3, 4]}

    def sweep(rounds, **options):
        gw.sweep(SLOW, grid, set={"run.rounds": rounds}, oracles=[gw.oracle(slow, dim=2)], **options)
        return capsys.readouterr().err
    shown = sweep(60)
    assert re.fullmatch(r"\S+: 2 of 4 runs, [12] s left\n(\S+: 4 of 4 runs\n)?", shown), shown
    assert sweep(60, progress=False) == "" and sweep(1) == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lines = sweep(60).split("\r")
    assert lines[0] == "" and "2 of 4 runs" in lines[1] and lines[-1].endswith("4 of 4 runs\x1b[K\n"), lines


def test_live_draws_during_the_run(monkeypatch, tmp_path):
    with notebook(monkeypatch, tmp_path) as outputs:
        started, seen = time.monotonic(), []
        result = run_functions([slow], dim=2, experiment=SLOW, set={"run.evaluate_every": 1, "run.rounds": 60}, live=True,
                               progress=False, on_record=lambda r: seen.append(r) or r.round == 50)
        seconds = time.monotonic() - started
    assert result.rounds == 50 and len(seen) == 51, "on_record is called as well"
    images = [output["data"]["text/html"] for output in outputs]
    assert 2 <= len(images) <= 2 + seconds / 0.5
    assert [output["update"] for output in outputs] == [False] + [True] * (len(images) - 1)
    assert images[-1] == gw.plot(result)._repr_html_() != images[0]


def test_live_needs_a_notebook():
    with pytest.raises(RuntimeError, match="live=True draws in a notebook of IPython"):
        gw.run(SMALL, live=True)
