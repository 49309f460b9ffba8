"""Benchmarks of the Python package. Most have a reference, which runs in turn with them.

    python3 -m gradwire.bench                the table, in some two minutes
    python3 -m gradwire.bench reply tape     the benchmarks whose names start with these
    python3 -m gradwire.bench --json         a list with an object for each row
    python3 -m gradwire.bench --small        tiny sizes, which check only that they run
    python3 -m gradwire.bench --repeats 30   more repeats of each measurement
"""
from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

import gradwire as gw
from gradwire import _core

_Reference = Optional[tuple[str, Sequence[float]]]
_BENCHMARKS: list[tuple[str, Callable[[Bench], None]]] = []


def benchmark(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
    _BENCHMARKS.append((function.__name__, function))
    return function


class Bench:
    """The rows that were measured."""

    def __init__(self, small: bool, repeats: int, show: bool) -> None:
        self.small, self._repeats, self._show = small, repeats, show
        self.rows: list[dict[str, Any]] = []

    def size(self, usual: int, small: int) -> int:
        return small if self.small else usual

    def in_turns(self, *functions: Callable[[], Any], repeats: int = 10) -> list[tuple[Any, ...]]:
        """The results of each function, which are called in turn, after a first call that does not count."""
        repeats = 1 if self.small else self._repeats or repeats
        if not self.small:
            for function in functions:
                function()
        turns = [[function() for function in functions] for _ in range(repeats)]
        return list(zip(*turns))

    def row(self, name: str, unit: str, values: Sequence[float], reference: _Reference = None, *, most: float | None = None,
            of: str = "value", note: str = "") -> None:
        """Adds a row. `reference` is (name, values). `most` is the bound of the median, of its difference to that of the
        reference, or of the ratio to it."""
        row: dict[str, Any] = {"name": name, "unit": unit, "min": min(values), "median": statistics.median(values), "note": note}
        if reference:
            row["compared_with"] = reference[0]
            row["reference_min"], row["reference_median"] = min(reference[1]), statistics.median(reference[1])
        if most is not None:
            median, other = row["median"], row.get("reference_median", math.nan)
            reached = {"value": median, "difference": median - other, "ratio": median / other}[of]
            row |= {"target": most, "target_of": of, "reached": reached, "met": reached <= most}
        self._add(row)

    def skip(self, name: str, why: str) -> None:
        self._add({"name": name, "skipped": why})

    def _add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self._show:
            print(_line(row), flush=True)


_HEADER = f"{'name':<34} {'min':>9} {'median':>9}  {'unit':<8}  {'compared with':<28} {'min':>9} {'median':>9}  target"


def _line(row: dict[str, Any]) -> str:
    if "skipped" in row:
        return f"{row['name']:<34} skipped: {row['skipped']}"
    text = f"{row['name']:<34} {row['min']:9.4g} {row['median']:9.4g}  {row['unit']:<8}  "
    if "compared_with" in row:
        text += f"{row['compared_with']:<28} {row['reference_min']:9.4g} {row['reference_median']:9.4g}  "
    elif "target" in row:
        text += " " * 50
    if "target" in row:
        what = {"value": "", "difference": "difference ", "ratio": "ratio "}[row["target_of"]]
        text += f"{what}<= {row['target']:g}: {row['reached']:.3g}, {'met' if row['met'] else 'missed'}"
    return text.rstrip() + (f"\n    {row['note']}" if row["note"] else "")


def _cpu(function: Callable[[], object], calls: int = 1) -> Callable[[], float]:
    """Microseconds of processor time for a call."""
    def timed() -> float:
        started = time.process_time()
        function()
        return (time.process_time() - started) * 1e6 / calls
    return timed


def _wall(function: Callable[[], object], calls: int = 1) -> Callable[[], float]:
    """Microseconds for a call."""
    def timed() -> float:
        started = time.perf_counter()
        function()
        return (time.perf_counter() - started) * 1e6 / calls
    return timed


def _loop(function: Callable[..., object], calls: int, *arguments: object) -> Callable[[], None]:
    """A function that calls `function` so often."""
    def loop() -> None:
        for _ in range(calls):
            function(*arguments)
    return loop


def _program() -> str:
    """The program gradwire of the build or of the environment, or on the path. Empty if there is none."""
    for folder in (pathlib.Path(_core.__file__).resolve().parents[2] / "bin", pathlib.Path(sys.executable).parent):
        if (folder / "gradwire").is_file():
            return str(folder / "gradwire")
    return shutil.which("gradwire") or ""


_NO_PROGRAM = "the program gradwire is neither next to the package nor on the path"


def _quadratics(dim: int, clients: int, rounds: int, **algorithm: object) -> dict[str, dict[str, Any]]:
    return {"problem": {"kind": "quadratic", "dim": dim}, "clients": {"count": clients}, "algorithm": algorithm,
            "run": {"rounds": rounds, "evaluate_every": 0}}


def _returns_at_once(x: Any, out: Any) -> float:
    if out[0] != out[0]:  # nan: the first call, which must write it
        out[:] = 0
    return 0.0


def _zero(x: Any, out: Any) -> float:
    out[:] = 0
    return 0.0


@benchmark
def callback(bench: Bench) -> None:
    calls = bench.size(20_000, 20)
    for dim in (10, 1_000, 100_000):
        for on_other_thread in (False, True):
            oracle, some = gw.oracle(_returns_at_once, dim), calls if dim < 10_000 else max(1, calls // 50)
            x, out = np.zeros(dim), np.zeros(dim)
            pairs, function = bench.in_turns(lambda: [1e6 * t for t in _core.time_oracle(oracle, some, on_other_thread)],
                                             _cpu(_loop(_returns_at_once, some, x, out), some))
            bench.row(f"callback d={dim}" + (", other thread" if on_other_thread else ""), "us", [p[0] for p in pairs],
                      ("the function and two copies", [p[1] + f for p, f in zip(pairs, function)]), most=0.5,
                      of="difference")


def _ef21(bench: Bench, dim: int = 100) -> tuple[gw.Experiment, int]:
    """EF21 on quadratics without evaluations: (experiment, number of replies)."""
    rounds = bench.size(2_000, 3)
    return gw.Experiment(_quadratics(dim, 10, rounds, name="ef21", compressor="topk:k=5", step_size=0.01)), 10 * rounds


@benchmark
def reply(bench: Bench) -> None:
    experiment, replies = _ef21(bench)
    functions = [gw.oracle(_zero, 100) for _ in range(10)]
    x, out = np.zeros(100), np.zeros(100)
    python, function = bench.in_turns(_cpu(lambda: gw.run(experiment, oracles=functions), replies),
                                      _cpu(_loop(_zero, replies, x, out), replies))
    bench.row("reply EF21, d=100", "us", python, ("the function", function), most=1.5, of="difference",
              note="a reply of the library's EF21, with a function in Python; one thread")


class _EF21(gw.Algorithm):
    def start(self, s: types.SimpleNamespace) -> tuple[Any, Any]:
        return None, np.zeros_like(s.x)

    def client(self, c: gw.ClientContext, x: Any, g: Any) -> tuple[Any, Any]:
        gradient = c.gradient()
        if c.first:
            return gradient, gradient
        message = c.compress(gradient - g)
        return message, g + message.dense()

    def server(self, s: gw.ServerContext, x: Any, g: Any) -> tuple[Any, Any]:
        g = s.sum(onto=g)
        return x - s.step_size * g, g


@benchmark
def algorithm(bench: Bench) -> None:
    experiment, replies = _ef21(bench)
    mine, theirs = bench.in_turns(_cpu(lambda: gw.run(experiment, algorithm=_EF21()), replies),
                                  _cpu(lambda: gw.run(experiment, threads=1), replies))
    bench.row("algorithm EF21 in Python, d=100", "us", mine, ("the library's EF21", theirs), most=8,
              note="a reply; both include the gradient in C++, some 0.1 us")


@benchmark
def torch(bench: Bench) -> None:
    try:
        import torch

        import gradwire.torch
    except ImportError:
        return bench.skip("torch", "PyTorch is missing; apt-get install python3-torch libopenblas0-serial")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    loss, inputs, targets = torch.nn.CrossEntropyLoss(), torch.rand(100, 64), torch.arange(100) % 10
    parameters = list(network.parameters())

    def train() -> None:
        for p in parameters:
            p.grad = None
        loss(network(inputs), targets).backward()

    def naive(x: Any, out: Any) -> float:
        torch.nn.utils.vector_to_parameters(torch.from_numpy(x.copy()), parameters)
        for p in parameters:
            p.grad = None
        value = loss(network(inputs), targets)
        value.backward()
        out[:] = torch.cat([p.grad.flatten() for p in parameters]).numpy()
        return float(value)

    rounds = bench.size(300, 2)
    experiment = gw.Experiment({"precision": "fp32", "problem": {"kind": "custom", "dim": 2410}, "clients": {"count": 1},
                                "algorithm": {"name": "gd", "step_size": 1e-3}, "run": {"rounds": rounds, "evaluate_every": 0}})
    module = gw.torch.oracle(network, loss, inputs, targets)
    flat, naively, alone = bench.in_turns(
        _cpu(lambda: gw.run(experiment, oracles=[module]), rounds),
        _cpu(lambda: gw.run(experiment, oracles=[gw.oracle(naive, 2410)]), rounds), _cpu(_loop(train, rounds), rounds))
    bench.row("torch, d=2410", "us", flat, ("forward and backward", alone), most=40, of="difference",
              note="a round of gd with gradwire.torch.oracle; one client, one thread")
    bench.row("torch, flattened naively", "us", naively, ("forward and backward", alone))
    return None


_Number = Union["_Scalar", float]


class _Scalar:
    """A scalar that remembers its operands and the derivatives by them, in plain Python."""

    def __init__(self, value: float, *operands: tuple[_Scalar, float]) -> None:
        self.value, self.operands, self.grad = value, operands, 0.0

    def __add__(self, other: _Number) -> _Scalar:
        other = _scalar(other)
        return _Scalar(self.value + other.value, (self, 1.0), (other, 1.0))

    def __mul__(self, other: _Number) -> _Scalar:
        other = _scalar(other)
        return _Scalar(self.value * other.value, (self, other.value), (other, self.value))

    def __pow__(self, power: int) -> _Scalar:
        return _Scalar(self.value**power, (self, power * self.value**(power - 1)))

    def __truediv__(self, other: _Number) -> _Scalar:
        return self * _scalar(other)**-1

    def __rtruediv__(self, other: float) -> _Scalar:
        return self**-1 * other

    def __neg__(self) -> _Scalar:
        return self * -1

    def __sub__(self, other: _Number) -> _Scalar:
        return self + -_scalar(other)

    def relu(self) -> _Scalar:
        return _Scalar(max(0.0, self.value), (self, float(self.value > 0)))

    __radd__, __rmul__ = __add__, __mul__

    def backward(self) -> None:
        order: list[_Scalar] = []
        seen: set[_Scalar] = set()

        def visit(node: _Scalar) -> None:
            if node not in seen:
                seen.add(node)
                for operand, _ in node.operands:
                    visit(operand)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, derivative in node.operands:
                operand.grad += derivative * node.grad


def _scalar(x: _Number) -> _Scalar:
    return x if isinstance(x, _Scalar) else _Scalar(x)


def _micrograd(a: Any, b: Any) -> tuple[float, float]:
    """The example on the front page of micrograd, 22 operations. Returns the derivatives by a and b."""
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + (b + a).relu()
    d = d + 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g = g + 10.0 / f
    g.backward()
    return a.grad, b.grad


def _on_tape() -> tuple[float, float]:
    tape = gw.Tape()
    return _micrograd(tape.variable(-4.0), tape.variable(2.0))


@benchmark
def tape(bench: Bench) -> None:
    calls = bench.size(1_000, 2)
    assert np.allclose(_on_tape(), _micrograd(_Scalar(-4.0), _Scalar(2.0)))
    ours, plain = bench.in_turns(_cpu(_loop(_on_tape, calls), calls),
                                 _cpu(_loop(lambda: _micrograd(_Scalar(-4.0), _Scalar(2.0)), calls), calls))
    bench.row("tape, micrograd's example", "us", ours, ("classes of plain Python", plain), most=20)


@benchmark
def run(bench: Bench) -> None:
    experiment = {"problem": {"kind": "quadratic", "dim": 100}, "clients": {"count": 10}, "run": {"rounds": 100},
                  "algorithm": {"name": "ef21", "compressor": "topk:k=5", "step_size": 0.01}}
    usual, one = bench.in_turns(_wall(lambda: gw.run(experiment)), _wall(lambda: gw.run(experiment, threads=1)), repeats=50)
    bench.row("run 100 rounds, d=100, n=10", "us", usual, ("one thread", one), most=1_000,
              note="ef21 topk:k=5, evaluated in every round; from a dict to its Result")


def _child(command: Sequence[str], folder: str) -> tuple[float, float]:
    """(processor seconds, largest memory in MB) of a process. The seconds are those that it prints, if it prints any."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, cwd=folder, stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed (see above)")
        printed.seek(0)
        return float(printed.read() or usage.ru_utime + usage.ru_stime), usage.ru_maxrss * 1024 / 1e6


@benchmark
def demo(bench: Bench) -> None:
    program = _program()
    if not program:
        return bench.skip("demo", _NO_PROGRAM)
    with tempfile.TemporaryDirectory() as folder:
        experiment = gw.Experiment("demo_ef21", {"run.rounds": bench.size(250, 5)})
        file = pathlib.Path(folder, "demo.toml")
        file.write_text(experiment.toml())

        def ours() -> gw.Result:
            return gw.run(file, out=os.path.join(folder, "python"), overwrite=True, progress=False)
        cpu, theirs = bench.in_turns(
            _cpu(ours), lambda: 1e6 * _child([program, "run", str(file), "--quiet", "--out", "program"], folder)[0])
        same = (ours().model == gw.read(os.path.join(folder, "program")).model).all()
        bench.row("demo_ef21", "ms", [t / 1e3 for t in cpu], ("gradwire run", [t / 1e3 for t in theirs]), most=1.1, of="ratio",
                  note=f"processor time, with all files of results; the models {'have equal bits' if same else 'DIFFER'}")
    return None


@benchmark
def million(bench: Bench) -> None:
    program = _program()
    if not program:
        return bench.skip("million", _NO_PROGRAM)
    clients = bench.size(1_000_000, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        experiment = _quadratics(100, clients, bench.size(1000, 3), name="ef21", compressor="topk:k=5", step_size=0.01)
        experiment["clients"]["participation"] = 0.001
        pathlib.Path(folder, "million.toml").write_text(gw.Experiment(experiment).toml())
        code = """import time, gradwire as gw
started = time.process_time()
gw.run('million.toml', out='python', threads=1, overwrite=True, progress=False)
print(time.process_time() - started)"""
        python, theirs = bench.in_turns(
            lambda: _child([sys.executable, "-c", code], folder),
            lambda: _child([program, "run", "million.toml", "--threads", "1", "--quiet", "--out", "program"], folder), repeats=3)
        for k, (what, unit) in enumerate([("processor time", "s"), ("memory", "MB")]):
            note = "ef21 topk:k=5, d=100; 1,000 rounds of 1,000 clients, one thread; without the start of Python"
            bench.row(f"million clients, {what}", unit, [p[k] for p in python], ("gradwire run", [t[k] for t in theirs]),
                      most=1.05, of="ratio", note="" if k else note)
    return None


@benchmark
def import_gradwire(bench: Bench) -> None:
    code = "import numpy, time; t = time.process_time(); import gradwire; print(1e3 * (time.process_time() - t))"

    with tempfile.TemporaryDirectory() as folder:  # for the compiled files, which users also have
        settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}

        def once() -> float:
            done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
            return float(done.stdout)
        bench.row("import, without NumPy's own", "ms", bench.in_turns(once)[0], most=20, note="processor time")


@benchmark
def ctrl_c(bench: Bench) -> None:
    if threading.current_thread() is not threading.main_thread():
        return bench.skip("ctrl-c", "it needs the main thread")
    endless = _quadratics(100, 10, 100_000_000, name="gd", step_size=1e-3)

    def seconds(**options: Any) -> float:
        sent: list[float] = []

        def send() -> None:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.1, send).start()
        try:
            gw.run(endless, progress=False, **options)
        except KeyboardInterrupt:
            return 1e3 * (time.perf_counter() - sent[0])
        raise RuntimeError("the run ended before Ctrl-C")

    def slow(x: Any, out: Any) -> float:
        time.sleep(0.02)
        return _zero(x, out)
    own, python = bench.in_turns(seconds, lambda: seconds(oracles=[gw.oracle(slow, 100) for _ in range(10)]))
    bench.row("ctrl-c, functions in C++", "ms", own, most=100)
    bench.row("ctrl-c, functions in Python", "ms", python, most=120, note="a gradient takes 20 ms")
    return None


@benchmark
def stop(bench: Bench) -> None:
    computing = threading.Event()

    def slow(x: Any, out: Any) -> float:
        computing.set()
        time.sleep(0.02)
        return _zero(x, out)
    custom = {"problem": {"kind": "custom", "dim": 10}, "clients": {"count": 1}, "run": {"rounds": 1_000_000},
              "algorithm": {"name": "gd", "step_size": 0.1}}

    def stopped(address: str, wait: Callable[[], object]) -> float:
        client = gw.Client(address, oracle=gw.oracle(slow, 10)).start()
        wait()
        started = time.perf_counter()
        client.stop()
        try:
            client.wait()
        except gw.RunError:
            pass
        return 1e3 * (time.perf_counter() - started)

    def with_server(clients: int, wait: Callable[[], object]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            with gw.Server(custom, set={"clients.count": clients}, state=os.path.join(folder, "state")) as server:
                return stopped(server.address, wait)

    def compute() -> None:
        computing.clear()
        computing.wait()

    waits, computes, backs_off = bench.in_turns(
        lambda: with_server(2, lambda: time.sleep(0.3)), lambda: with_server(1, compute),
        lambda: stopped("127.0.0.1:9", lambda: time.sleep(0.3)), repeats=5)
    bench.row("stop() of a client that waits", "ms", waits, most=100)
    bench.row("stop() of one that computes", "ms", computes, most=120, note="a gradient takes 20 ms")
    bench.row("stop() of one that backs off", "ms", backs_off, most=100)


@benchmark
def module(bench: Bench) -> None:
    file, strip = _core.__file__, shutil.which("strip")
    with tempfile.TemporaryDirectory() as folder:
        if strip:
            stripped = os.path.join(folder, "stripped.so")
            subprocess.run([strip, "-o", stripped, file], check=True)
            file = stripped
        bench.row("module" + (", stripped" if strip else ""), "MB", [os.path.getsize(file) / 1e6], most=10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python3 -m gradwire.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name, _ in _BENCHMARKS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=0, metavar="N")
    given = parser.parse_args(arguments)
    for name in given.names:
        if not any(known.startswith(name) for known in names):
            parser.error(f"no benchmark is called {name}; there are {', '.join(names)}")
    if not given.json:
        print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {sysconfig.get_platform()}, {os.cpu_count()} processors")
        print(_HEADER)
    bench = Bench(given.small, given.repeats, not given.json)
    for name, function in _BENCHMARKS:
        if not given.names or any(name.startswith(start) for start in given.names):
            function(bench)
    if given.json:
        print(json.dumps(bench.rows, indent=1))


if __name__ == "__main__":
    main()
