"""Objects, threads, processes and interpreters: how long each lives, and what is left of it."""
import gc
import os
import threading
import time

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, SMALL, assert_equal_results, run_functions, run_script

FEW = {"run.rounds": 6}
MOVES = {"algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 20}}


def linear(x):
    return float(x.sum()), np.ones_like(x)


# ---- objects and threads ----
def test_an_oracle_may_be_deleted_during_its_run():
    oracles, gone = [], []

    class Mine(gw.Oracle):
        dim = 3

        def loss_and_gradient(self, x, batch, out):
            if oracles:
                oracles.clear()
                gc.collect()
            out[:] = x
            return 0.0

        def __del__(self):
            gone.append(1)
    oracles += [Mine() for _ in range(4)]
    assert gw.run(GD, oracles=oracles).outcome == "finished"
    gc.collect()
    assert len(gone) == 4


def test_a_run_leaves_no_reference():
    class Marked:
        alive = 0

        def __init__(self):
            Marked.alive += 1

        def __del__(self):
            Marked.alive -= 1

    def once(fails):
        mark = Marked()

        class Mine(gw.Algorithm):
            def client(self, c, x, state):
                state = mark
                if fails and c.round == 3:
                    raise ValueError("fails")
                return c.gradient(), None

            def server(self, s, x, state):
                return x - 0.1 * s.mean(), None
        try:
            gw.run(GD, oracles=[gw.oracle(lambda x: (float(bool(mark)), x), 3)], algorithm=Mine(),
                   on_record=lambda record: mark and False)
        except ValueError:
            pass
    for fails in (False, True):
        once(fails)
        gc.collect()
        assert Marked.alive == 0


def test_a_run_within_each_callback_of_a_run():
    def inner():
        return gw.run(SMALL, set=FEW, algorithm=Inner()).model

    class Inner(gw.Algorithm):
        def client(self, c, x, state):
            return c.gradient(), None

        def server(self, s, x, state):
            return x - 0.05 * s.mean(), None
    expected, seen = inner(), []

    class Outer(Inner):
        def start(self, s):
            seen.append(inner())
            return None, None

        def client(self, c, x, state):
            seen.append(inner())
            return super().client(c, x, state)

        def server(self, s, x, state):
            seen.append(inner())
            return super().server(s, x, state)

    def f(x, out):
        before = x.copy()
        seen.append(inner())
        np.testing.assert_array_equal(x, before)
        out[:] = x
        return float(x @ x) / 2
    nested = gw.run(MOVES, oracles=[gw.oracle(f, 4) for _ in range(2)], algorithm=Outer(), x0=np.arange(4.0),
                    on_record=lambda record: bool(seen.append(inner())))
    plain = gw.run(MOVES, oracles=[gw.oracle(lambda x: (float(x @ x) / 2, x.copy()), 4) for _ in range(2)], algorithm=Inner(),
                   x0=np.arange(4.0))
    assert_equal_results(nested, plain)
    assert len(seen) > 100 and all((model == expected).all() for model in seen)


def test_a_function_that_asks_for_itself_keeps_its_own_arrays():
    """Its inner call comes from the context of the round, while the arrays of the outer call are in use."""
    depth = [0]
    contexts = []

    def f(x, out):
        out[:] = x
        if contexts and depth[0] == 0:
            depth[0] = 1
            np.testing.assert_array_equal(contexts[-1].gradient(np.full(4, 9.0)), np.full(4, 9.0))
            depth[0] = 0
        return float(x @ x) / 2

    class Asks(gw.Algorithm):
        def client(self, c, x, state):
            contexts.append(c)
            try:
                return c.gradient(), None
            finally:
                contexts.pop()

        def server(self, s, x, state):
            return x - 0.5 * s.mean(), None
    result = gw.run(MOVES, oracles=[gw.oracle(f, 4)], algorithm=Asks(), x0=np.arange(4.0))
    np.testing.assert_array_equal(result.model, np.arange(4.0) * 0.5 ** 20)


def in_threads(count, work):
    """Calls work(k) on threads of Python, and returns the results."""
    results = [None] * count

    def call(k):
        try:
            results[k] = work(k)
        except BaseException as error:
            results[k] = error
    threads = [threading.Thread(target=call, args=(k,)) for k in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results


@pytest.mark.parametrize("thread_safe", [False, True])
def test_runs_on_several_threads_share_oracles(least_squares, thread_safe):
    oracles = [gw.oracle(f, 10, thread_safe=thread_safe) for f in least_squares[2]]
    alone = gw.run(GD, oracles=oracles)
    for result in in_threads(6, lambda k: gw.run(GD, oracles=oracles, threads=1 + k % 3)):
        assert_equal_results(result, alone)


def test_a_run_on_another_thread_raises_there():
    class Unusual(Exception):
        pass

    def fail(x):
        raise Unusual("on a thread")
    assert all(type(error) is Unusual for error in in_threads(3, lambda k: run_functions([fail])))


def test_the_lock_of_the_interpreter_is_free_while_a_run_computes():
    counted, ends = [0], threading.Event()

    def count():
        while not ends.wait(0.001):
            counted[0] += 1
    thread = threading.Thread(target=count)
    thread.start()
    started = time.monotonic()
    gw.run(SMALL, set={"problem.dim": 200_000, "run.rounds": 400, "run.evaluate_every": 0})
    seconds, counts = time.monotonic() - started, counted[0]
    ends.set()
    thread.join()
    assert seconds > 0.1, "the run is too short to measure"
    assert counts > 5 and counts > 10 * seconds


# ---- processes ----
FORK = """
import os, sys, gradwire as gw, numpy as np, warnings
warnings.simplefilter("ignore")
gd = {"algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 5}}
def function(x): return float(x @ x) / 2, x.copy()
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@needs_fork
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""),
                    reason="the child of a fork may wait for a lock of the address sanitizer that a thread of the parent held")
def test_a_child_of_fork_may_begin_its_own_runs(tmp_path):
    run_script(FORK + """
import multiprocessing, threading
server = gw.Server({"problem": {"kind": "custom", "dim": 3}, "clients": {"count": 2}} | gd, state="state")
client = gw.Client(server.address, oracle=gw.oracle(function, 3)).start()
busy = threading.Thread(target=lambda: gw.run({"problem": {"kind": "quadratic", "dim": 1000}, "run.rounds": 20000,
    "algorithm": {"name": "gd", "step_size": 0.1}}))
busy.start()
def work(seed):
    return gw.run(gd, oracles=[gw.oracle(function, 3)], x0=np.full(3, float(seed))).model
expected = [work(seed).tolist() for seed in range(4)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert [model.tolist() for model in pool.map(work, range(4))] == expected
child = os.fork()
if child == 0:
    for use in (client.stop, client.wait, client.start, server.stop, server.wait):
        try: use()
        except RuntimeError as error: assert "start it in the child, or use the start method spawn" in str(error)
        else: os._exit(3)
    own = gw.Server({"problem": {"kind": "custom", "dim": 3}, "clients": {"count": 1}} | gd, state="of-child")
    gw.Client(own.address, oracle=gw.oracle(function, 3)).start().wait(30)
    assert own.wait(30).outcome == "finished"
    sys.exit(5)  # with all that Python does at its end: nothing may wait for threads of the parent
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
busy.join()
client.stop(); server.stop(); server.stop()
""", tmp_path)


@needs_fork
def test_a_run_does_not_continue_in_a_child_of_fork(tmp_path):
    assert run_script(FORK + """
def forks(x):
    if not pids and x[0] < 1:
        pids.append(os.fork())
    return function(x)
pids = []
try:
    result = gw.run(gd, oracles=[gw.oracle(forks, 3)], x0=np.ones(3))
except RuntimeError as error:
    print(error, flush=True)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 7 and result.outcome == "finished"
""", tmp_path).strip() == ("this run, client or server belongs to the process that started it; start it in the child, or use the "
                           "start method spawn")


@needs_fork
def test_a_child_of_fork_that_lacks_the_threads_of_its_run_ends(tmp_path):
    run_script(FORK + """
def forks(x):
    if not pids:
        pids.append(None)
        os.dup2(os.open("errors", os.O_CREAT | os.O_WRONLY), 2) if (pid := os.fork()) == 0 else pids.append(pid)
    return function(x)
pids = []
result = gw.run(gd, oracles=[gw.oracle(forks, 3, thread_safe=True) for _ in range(8)], threads=4)
assert os.waitstatus_to_exitcode(os.waitpid(pids[1], 0)[1]) == 1 and result.outcome == "finished"
text = open("errors").read()
assert text.count("\\n") == 1 and "start it in the child" in text, text
""", tmp_path)


@pytest.mark.parametrize("what", ["run", "library", "algorithm", "sweep", "client", "server", "main"])
def test_a_program_may_end_while_it_works(tmp_path, what):
    started = time.monotonic()
    run_script(FORK.replace('"rounds": 5', '"rounds": 100_000_000, "evaluate_every": 0') + """
import threading, time
class Mine(gw.Algorithm):
    def client(self, c, x, state): time.sleep(0.01); return c.gradient(), None
    def server(self, s, x, state): return x, None
def slow(x):
    time.sleep(0.02)
    return function(x)
quadratic = {"problem": {"kind": "quadratic", "dim": 1000}, "algorithm": {"name": "gd", "step_size": 1e-9}}
calls = {
    "run": lambda: gw.run(gd, oracles=[gw.oracle(slow, 3, thread_safe=True) for _ in range(50)], threads=4),
    "library": lambda: gw.run(gd | quadratic),
    "algorithm": lambda: gw.run(gd | quadratic, algorithm=Mine()),
    "sweep": lambda: gw.sweep(gd | quadratic, {"seed": [1, 2, 3, 4]}, set={"run.evaluate_every": 1_000_000}),
}
what = sys.argv[1]
custom = {"problem": {"kind": "custom", "dim": 3}} | gd
if what in calls:
    threading.Thread(target=calls[what], daemon=True).start()
elif what in ("client", "server"):
    server = gw.Server(custom | {"clients.count": 3}, state="state", on_record=lambda record: time.sleep(0.05),
                       set={"run.evaluate_every": 1})
    if what == "client":
        clients = [gw.Client(server.address, oracle=gw.oracle(slow, 3)).start() for _ in range(3)]
else:
    class Ends(Exception): pass
    def ends(x): raise SystemExit(0)
    gw.run(gd, oracles=[gw.oracle(ends, 3, thread_safe=True) for _ in range(4)], threads=4)
time.sleep(0.3)
""", tmp_path, what)
    assert time.monotonic() - started < 15


def test_a_second_interpreter_is_refused_in_one_line(tmp_path):
    pytest.importorskip("_xxsubinterpreters")
    for before in ("", "import gradwire\n"):
        lines = run_script(before + """
import _xxsubinterpreters as interpreters
other = interpreters.create(isolated=False)
code = '''
import sys
for _ in range(2):
    try: import gradwire
    except ImportError as error: print(error)
    else: print("imported")
'''
interpreters.run_string(other, code)
interpreters.destroy(other)
import gradwire as gw
assert gw.run({"problem": {"kind": "quadratic", "dim": 3}, "algorithm": {"name": "gd", "step_size": 0.1},
               "run.rounds": 3}).outcome == "finished"
""", tmp_path).splitlines()
        assert lines == ["gradwire works in the main interpreter of a process alone; use a process in place of a "
                         "subinterpreter"] * 2


# ---- memory over time ----
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows(work, before, after):
    """Bytes by which memory grows from `before` to `after` calls."""
    for k in range(before):
        work(k)
    gc.collect()
    start = resident()
    for k in range(before, after):
        work(k)
    gc.collect()
    return resident() - start


linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")


@linux
def test_a_thousand_runs_leave_memory_flat(least_squares):
    class Unusual(Exception):
        pass

    class Mine(gw.Algorithm):
        def client(self, c, x, state):
            if c.round == 5 and fails:
                raise Unusual
            return c.compress(c.gradient()), {"a": state}

        def server(self, s, x, state):
            return x - 0.05 * s.mean(), {"b": state and list(state)}
    big, fails = {"problem.dim": 2000, "run.rounds": 8}, False

    def work(k):
        nonlocal fails
        fails = k % 4 == 3
        try:
            gw.run(SMALL, set=big, algorithm=Mine() if k % 2 else None, threads=1 + k % 3)
            run_functions(least_squares[2], set={"run.rounds": 8})
        except Unusual:
            pass
    assert grows(work, 200, 1200) < 2_000_000


@linux
@pytest.mark.slow
def test_a_thousand_clients_leave_memory_flat(tmp_path):
    keys = {"problem": {"kind": "custom", "dim": 2000}, "clients": {"count": 1}} | MOVES | {"run.rounds": 3}

    def work(k):
        with gw.Server(keys, state=tmp_path / str(k)) as server:
            with gw.Client(server.address, oracle=gw.oracle(lambda x: (float(x @ x) / 2, x.copy()), 2000)) as client:
                client.wait(60)
            server.wait(60)
    assert grows(work, 100, 1100) < 4_000_000


@linux
def test_a_hundred_clients_at_the_same_time_leave_nothing(tmp_path):
    def threads():
        return len(os.listdir("/proc/self/task"))

    def files():
        return len(os.listdir("/proc/self/fd"))
    before = threads(), files()  # a thread of an earlier test may still end
    keys = {"problem": {"kind": "custom", "dim": 5}, "clients": {"count": 100}} | MOVES | {"run.rounds": 3}
    with gw.Server(keys, state=tmp_path / "state") as server:
        clients = [gw.Client(server.address, oracle=gw.oracle(linear, 5), threads=1).start() for _ in range(100)]
        assert server.wait(60).outcome == "finished"
        [client.wait(60) for client in clients]
    del server, clients
    gc.collect()
    ends = time.monotonic() + 5
    while (threads() > before[0] or files() > before[1]) and time.monotonic() < ends:
        time.sleep(0.01)
    assert threads() <= before[0] and files() <= before[1]
