"""Importing the package is fast, and imports no package but NumPy."""
import os
import subprocess
import sys

import gradwire as gw
import pytest

MOST_SECONDS = 0.020


def in_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
                          check=True).stdout


def test_imports_no_package_but_numpy():
    code = "import numpy, sys; before = set(sys.modules); import gradwire; print(*sorted(set(sys.modules) - before))"
    roots = {name.split(".")[0] for name in in_python(code).split()}
    assert "gradwire" in roots
    assert roots - set(sys.stdlib_module_names) <= {"gradwire", "numpy", "pybind11_builtins"}


@pytest.mark.slow
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer")
def test_import_takes_at_most_20_ms(tmp_path):
    code = "import numpy, time; t = time.process_time(); import gradwire; print(time.process_time() - t)"
    caches = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    assert min(float(in_python(code, **caches)) for _ in range(8)) < MOST_SECONDS


def test_has_the_version_of_its_types():
    assert gw.__version__
    assert all(hasattr(gw, name) for name in gw.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gw.nothing
