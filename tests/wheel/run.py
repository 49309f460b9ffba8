#!/usr/bin/env python3
"""Installs the Python package with pip into an empty virtual environment that sees the system's packages, and runs the first
example of docs/python.md and the three programs there.

    run.py BUILD COMPILER      BUILD/wheel_test holds the environment; pip builds in build/wheel of the source
                               exit code 77: the build has no Python package, or its interpreter lacks a tool
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 11_000_000  # the goal of docs/reference/benchmarks.md is 10 MB
build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
work = build / "wheel_test"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {' '.join(map(str, command))}\n{done.stdout[-5000:]}")
    return done.stdout


interpreter = re.search(r"^GRADWIRE_PYTHON_INTERPRETER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]
if not interpreter:
    print("SKIPPED: this build has no Python package")
    sys.exit(77)
for module in ("ensurepip", "setuptools", "wheel", "pandas"):
    if subprocess.run([interpreter, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode != 0:
        print(f"SKIPPED: {interpreter} has no {module}")
        sys.exit(77)

shutil.rmtree(work, ignore_errors=True)
run(interpreter, "-m", "venv", "--system-site-packages", work / "venv")
environment = {**os.environ, "CXX": compiler, "PATH": f"{work / 'venv/bin'}:{os.environ['PATH']}"}
environment.pop("PYTHONPATH", None)
run("pip", "install", "--no-build-isolation", "--no-index", ROOT, env=environment)

(work / "experiments").symlink_to(ROOT / "experiments")
here = {"env": environment, "cwd": work}
if "finished" not in run("python", "-c", "import gradwire as gw; print(gw.run('quadratics', set={'run.rounds': 3}).outcome)", **here):
    sys.exit("a run of the installed package does not finish")
run("python", ROOT / "python/examples/1.py", **here)
package = pathlib.Path(run("python", "-c", "import gradwire; print(gradwire.__path__[0])", **here).strip())
if work not in package.parents or not (package / "py.typed").exists() or not (package / "_core.pyi").exists():
    sys.exit(f"{package} is not the installed package, or it lacks its types")
module, = package.glob("_core*.so")
if module.stat().st_size > MOST_BYTES:
    sys.exit(f"{module.name} has {module.stat().st_size} bytes; at most {MOST_BYTES}")
version = run("python", "-c", "import gradwire; print(gradwire.__version__)", **here).strip()
for program in ("gradwire", "gradwire-server", "gradwire-client"):
    if pathlib.Path(shutil.which(program, path=environment["PATH"])).parent != work / "venv/bin":
        sys.exit(f"{program} is not installed")
    if version not in run(program, "--version", **here):
        sys.exit(f"{program} has another version than the package, {version}")
