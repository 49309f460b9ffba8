"""python3 -m gradwire.bench runs, and says what it measured."""
import json
import os
import subprocess
import sys

import pytest
from gradwire import bench


def run(*arguments):
    environment = os.environ | {"PATH": os.environ["GRADWIRE_BIN"] + ":" + os.environ["PATH"]}
    return subprocess.run([sys.executable, "-m", "gradwire.bench", "--small", *arguments], env=environment, capture_output=True,
                          text=True, timeout=300)


def test_every_benchmark_runs():
    done = run("--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    names = [row["name"] for row in rows]
    for name in ("callback d=100000, other thread", "reply EF21, d=100", "algorithm EF21 in Python, d=100",
                 "tape, micrograd's example", "run 100 rounds, d=100, n=10", "demo_ef21", "million clients, memory",
                 "import, without NumPy's own", "ctrl-c, functions in C++", "stop() of one that backs off"):
        assert name in names
    for row in rows:
        if "skipped" in row:
            assert "install" in row["skipped"], row
        else:
            assert row["min"] <= row["median"] and (row["min"] > 0 or row["name"].startswith("callback"))
    assert "the models have equal bits" in next(row["note"] for row in rows if row["name"] == "demo_ef21")


def test_the_table_names_rows_and_bounds():
    done = run("tape", "module")
    assert done.returncode == 0, done.stderr
    assert "classes of plain Python" in done.stdout and "<= 20: " in done.stdout and "MB" in done.stdout
    wrong = run("tapes")
    assert wrong.returncode == 2 and "no benchmark is called tapes" in wrong.stderr


def test_bounds_are_compared_with_medians():
    made = bench.Bench(small=False, repeats=0, show=False)
    made.row("value", "us", [1, 2, 9], most=2)
    made.row("difference", "us", [10, 11, 12], ("reference", [1, 2, 3]), most=8, of="difference")
    made.row("ratio", "us", [4, 4], ("reference", [4, 4]), most=1.1, of="ratio")
    made.skip("skipped", "a package is missing")
    assert [row.get("met") for row in made.rows] == [True, False, True, None]
    assert [row.get("reached") for row in made.rows] == [2, 9, 1, None]
    assert bench._line(made.rows[1]).endswith("difference <= 8: 9, missed")


def test_turns_alternate():
    calls = []
    made = bench.Bench(small=False, repeats=2, show=False)
    assert made.in_turns(lambda: calls.append("a") or 1, lambda: calls.append("b") or 2) == [(1, 1), (2, 2)]
    assert calls == ["a", "b"] * 3


def test_plain_python_scalars_have_the_derivatives_of_the_tape():
    expected = bench._on_tape()
    assert bench._micrograd(bench._Scalar(-4.0), bench._Scalar(2.0)) == pytest.approx(expected)
    assert expected == pytest.approx((138.8338, 645.5773), abs=1e-3)
