"""Helpers of the tests of the Python package."""
import os
import pathlib
import re
import subprocess
import sys
import time

import gradwire as gw
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRADWIRE = os.environ["GRADWIRE_BIN"] + "/gradwire"

SMALL = {"problem": {"kind": "quadratic", "dim": 12, "heterogeneity": 0.7}, "clients": {"count": 5},
         "algorithm": {"name": "ef21", "compressor": "topk:k=3", "step_size": 0.05}, "run": {"rounds": 40, "x0": "normal"}}


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long, or needs PyTorch; see run.sh")


# On a slow machine, any run may take long enough to show its progress.
PROGRESS = re.compile(r"^[^\n:]+: (round [\d,]+ of [\d,]+|[\d,]+ of [\d,]+ runs).*\n", re.MULTILINE)


def run_script(text, folder, *arguments):
    """Runs Python code in a process of its own, which may write only its progress to stderr, and returns what it prints."""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", text, *arguments], cwd=folder, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert PROGRESS.sub("", done.stderr) == ""
    return done.stdout


def gradwire(folder, *arguments):
    """Runs the program in a folder."""
    done = subprocess.run([GRADWIRE, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def eventually(condition):
    """Waits until the condition is true. Returns False after 30 s."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False


def assert_equal_results(one, other):
    np.testing.assert_array_equal(one.model, other.model)
    np.testing.assert_array_equal(one.metrics.loss, other.metrics.loss)


@pytest.fixture
def least_squares():
    """Matrices and right-hand sides of four clients, and the functions of these in Python."""
    random = np.random.default_rng(0)
    A, b = random.normal(size=(4, 50, 10)), random.normal(size=(4, 50))

    def function(i):
        def f(x, out):
            residual = A[i] @ x - b[i]
            np.matmul(A[i].T, residual / 50, out=out)
            return residual @ residual / 100
        return f

    return A, b, [function(i) for i in range(4)]


GD = {"algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 30}}


def run_functions(functions, dim=10, **options):
    return gw.run(options.pop("experiment", GD), oracles=[gw.oracle(f, dim) for f in functions], **options)
