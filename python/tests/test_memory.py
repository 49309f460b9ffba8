"""What belongs to whom: arrays, threads, processes, interpreters. Nothing here may crash, and every error says what to do."""
import array
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, SMALL, run_functions, run_script

FEW = {"run.rounds": 6}
MOVES = {"algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 20}}


def linear(x):
    return float(x.sum()), np.ones_like(x)


# ---- arrays that functions get ----
def views_of(a):
    """Everything of an array that Python code may keep."""
    yield "the array", lambda: a
    yield "a slice", lambda: a[1:3]
    yield "a view of a view", lambda: a[1:][::-1]
    yield "a memoryview", lambda: np.asarray(memoryview(a))
    yield "a transposed matrix", lambda: a.reshape(5, -1).T
    yield "an iterator", lambda: np.fromiter(a.flat, a.dtype)
    yield "a tensor", lambda: pytest.importorskip("torch").from_numpy(a if a.flags.writeable else a.view()).numpy()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("kind", range(7), ids=[name for name, _ in views_of(None)])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_what_a_function_keeps_keeps_its_numbers(kind, precision):
    kept = []

    def f(x, batch, out):
        out[:] = x + len(batch)
        for a in (x, out):
            view = list(views_of(a))[kind][1]()
            kept.append((view, view.copy()))
        kept.append((batch, batch.copy()))
        return float(x.sum())
    gw.run({"algorithm": {"name": "sgd_nice", "batch": 3, "step_size": 0.1}, "precision": precision, "run.rounds": 20,
            "run.x0": "normal"}, oracles=[gw.oracle(f, 10, 8) for _ in range(3)])
    assert len(kept) > 100
    for view, then in kept:
        np.testing.assert_array_equal(view, then)


def test_what_an_algorithm_keeps_keeps_its_numbers():
    kept = []

    class Keeps(gw.Algorithm):
        def start(self, s):
            kept.append((s.x, s.x.copy()))
            return s.x, s.x

        def client(self, c, x, state):
            gradient, state = c.gradient(), state + 1
            payload = c.compress(gradient)
            for a in (x, x[2:5], state, gradient, payload.values, payload.indices, payload.dense()):
                kept.append((a, a.copy()))
            return payload, state

        def server(self, s, x, state):
            mean = s.mean()
            replies = [reply.dense() for reply in s.replies]
            for a in (x, x[::2], s.x, state, mean, *replies):
                kept.append((a, a.copy()))
            return x - 0.05 * mean, state + x
    result = gw.run(SMALL, set=FEW, algorithm=Keeps())
    for a, then in kept:
        np.testing.assert_array_equal(a, then)
    model = result.model.copy()
    gw.run(SMALL, set=FEW, algorithm=Keeps())
    np.testing.assert_array_equal(result.model, model)


def test_a_state_of_any_type_comes_back_as_it_was():
    states = [None, 3, "text", {"a": [1, 2]}, np.zeros(0), np.arange(3.0), np.arange(3, dtype=np.float32), np.eye(2),
              np.ma.masked_array([1.0, 2], [True, False]), np.array(["2020-01-01"], "M8[D]"), np.arange(3.0).astype(">f8"),
              np.array([(1, 2.0)], "i4,f8"), np.array([1 + 2j]), np.array([None, "x"], object), np.array([np.nan, -0.0, np.inf])]
    for precision in ("fp64", "fp32"):
        for state in states:
            seen = []

            class Holds(gw.Algorithm):
                def start(self, s):
                    return state, state

                def client(self, c, x, state):
                    seen.append(state)
                    return x, state

                def server(self, s, x, state):
                    seen.append(state)
                    return x, state
            gw.run(SMALL, set=FEW | {"precision": precision}, algorithm=Holds(), transport="encoded")
            for each in seen:
                assert type(each) is type(state)
                if isinstance(state, np.ndarray):
                    assert each.dtype == state.dtype and each.shape == state.shape
                    assert each.tobytes() == state.tobytes() or state.dtype == object and each.tolist() == state.tolist()
                    assert np.ma.getmaskarray(each).tolist() == np.ma.getmaskarray(state).tolist()
                else:
                    assert each == state


@pytest.mark.parametrize("change, error, words", [
    (lambda a: a.resize(2, refcheck=False), ValueError, r"out has shape \(2,\); it must have shape \(10,\)"),
    (lambda a: a.resize(1000, refcheck=False), ValueError, r"out has shape \(1000,\)"),
    (lambda a: a.resize(0, refcheck=False), ValueError, r"out has shape \(0,\)"),
    (lambda a: setattr(a, "shape", (5, 2)), ValueError, r"out has shape \(5, 2\)"),
    (lambda a: setattr(a, "dtype", np.int64), TypeError, "out has type int64; it must have type float64"),
    (lambda a: setattr(a, "dtype", ">f8"), TypeError, "out has type '>d', which has another byte order"),
])
def test_a_function_that_changes_out_itself_is_told(change, error, words):
    def f(x, out):
        out[:] = x
        change(out)
        return 0.0
    with pytest.raises(error, match=words):
        run_functions([f])


@pytest.mark.parametrize("change", [
    lambda a: a.resize(2, refcheck=False), lambda a: a.resize(100_000, refcheck=False), lambda a: setattr(a, "shape", (5, 2)),
    lambda a: setattr(a, "dtype", np.int64), lambda a: setattr(a, "strides", (0,)), lambda a: a.fill(7)])
def test_a_function_that_changes_x_itself_changes_nothing_else(change):
    def f(x, out):
        assert x.shape == (10,) and x.dtype == np.float64 and not x.flags.writeable
        out[:] = x
        loss = float(x @ x) / 2
        x.flags.writeable = True
        change(x)
        return loss
    assert_equal_results(run_functions([f], x0=np.arange(10.0)),
                         run_functions([lambda x: (float(x @ x) / 2, x.copy())], x0=np.arange(10.0)))


def assert_equal_results(one, other):
    np.testing.assert_array_equal(one.model, other.model)
    np.testing.assert_array_equal(one.metrics.loss, other.metrics.loss)


def test_a_function_that_uses_another_array_object_in_place_of_out_writes_nothing():
    def f(x, out):
        out = x * 2  # noqa: F841, a common mistake: the name, not the array
        return 0.0
    with pytest.raises(ValueError, match="does not fit|different results|not finite"):
        gw.check(gw.oracle(lambda x, out: (f(x, out), float(x @ x))[1], 10))


# ---- arrays that functions return ----
def returned(gradient, dim=4, **options):
    return run_functions([lambda x: (0.0, gradient)], dim=dim, set=FEW, **options).model


GRADIENT = np.array([1.0, -2, 3, 0.5])


def strided(a, step):
    wide = np.full(len(a) * abs(step), 99.0)
    view = wide[::step]
    view[:] = a
    return view


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


class OnlyBuffer(ctypes.c_double * 4):
    """Offers the buffer protocol and nothing of NumPy."""


@pytest.mark.parametrize("form", [
    GRADIENT, strided(GRADIENT, 3), strided(GRADIENT, -2), read_only(GRADIENT), np.asfortranarray(GRADIENT), GRADIENT.tolist(),
    tuple(GRADIENT), np.ma.masked_array(GRADIENT), array.array("d", GRADIENT), memoryview(array.array("d", GRADIENT)),
    memoryview(array.array("d", np.repeat(GRADIENT, 2)))[::2], memoryview(GRADIENT.tobytes()).cast("d"), OnlyBuffer(*GRADIENT),
    np.stack([GRADIENT, GRADIENT])[:, :].T[:, 1], np.frombuffer(b"x" + GRADIENT.tobytes(), np.uint8)[1:].view(np.float64)],
    ids=lambda form: type(form).__name__)
def test_a_gradient_may_have_any_layout(form):
    np.testing.assert_array_equal(returned(form), returned(GRADIENT.copy()))


def test_one_number_may_stand_for_all():
    np.testing.assert_array_equal(returned(np.broadcast_to(2.0, 4)), returned(np.full(4, 2.0)))


@pytest.mark.parametrize("form, error, words", [
    (GRADIENT[1:], ValueError, r"the gradient has shape \(3,\); it must have shape \(4,\)"),
    (GRADIENT.reshape(4, 1), ValueError, r"shape \(4, 1\)"), (np.float64(3), ValueError, r"shape \(\)"),
    (np.empty(0), ValueError, r"shape \(0,\)"), (GRADIENT.astype(np.float32), TypeError, "float32"),
    (GRADIENT.astype(int), TypeError, "int64"), (GRADIENT.astype(">f8"), TypeError, "'>d', which has another byte order"),
    (GRADIENT.astype(complex), TypeError, "Zd"), (GRADIENT.astype(bool), TypeError, "bool"),
    (GRADIENT.astype(np.float16), TypeError, "float16"), (GRADIENT.astype(np.longdouble), TypeError, "longdouble"),
    (GRADIENT.astype(object), TypeError, "object"), (np.array(["2020"] * 4, "M8[Y]"), ValueError, "M"),
    (np.array([(1.0, 2)] * 4, "f8,i4"), TypeError, "T{"), (b"12345678" * 4, TypeError, "uint8"),
    ("text", (TypeError, ValueError), ""),
    (None, TypeError, "has type object"), ({}, TypeError, "has type object"),
    (array.array("f", GRADIENT), TypeError, "float32"),
])
def test_a_wrong_gradient_is_refused(form, error, words):
    with pytest.raises(error, match=words):
        returned(form)


def test_a_gradient_may_overlap_x_and_out():
    def of_x(x):
        return float(x @ x) / 2, x

    def shifted(x, out):
        out[:] = x
        out[1:] = out[:-1]
        return float(x @ x) / 2

    def shifted_by_hand(x):
        return float(x @ x) / 2, np.concatenate([x[:1], x[:-1]])
    start = np.arange(1.0, 11)
    assert_equal_results(run_functions([of_x], x0=start), run_functions([lambda x: (float(x @ x) / 2, x.copy())], x0=start))
    assert_equal_results(run_functions([shifted], x0=start), run_functions([shifted_by_hand], x0=start))


def test_an_array_that_is_freed_or_shrunk_after_its_use():
    shared = array.array("d", [1.0] * 10)

    def f(x):
        while len(shared) > 10:
            shared.pop()
        shared.extend([1.0] * 5)  # moves the memory; nothing may still look at it
        while len(shared) > 10:
            shared.pop()
        return 0.0, shared
    assert_equal_results(run_functions([f]), run_functions([lambda x: (0.0, np.ones(10))]))

    def freed(x):
        return 0.0, np.ones(10)[:]
    assert_equal_results(run_functions([freed]), run_functions([lambda x: (0.0, np.ones(10))]))


def test_a_loss_that_is_not_a_number():
    class Fails:
        def __float__(self):
            raise KeyError("in __float__")
    for loss, error in ((None, TypeError), ("1", TypeError), (np.ones(3), TypeError), (1j, TypeError), (Fails(), KeyError)):
        with pytest.raises(error):
            run_functions([lambda x: (loss, x)])
    for loss in (1, True, np.float32(1), np.ones(1)[0], np.array(1.0)):
        assert run_functions([lambda x: (loss, x)], set=FEW).metrics.loss[0] == 1


@pytest.mark.parametrize("score", [(-1, 3), (1.5, 3), (np.nan, 3), (1, np.inf), (1, 2, 3), "ab", (None, 1)])
def test_a_wrong_score_is_refused(score):
    class Scored(gw.Oracle):
        dim = 3

        def loss_and_gradient(self, x, batch, out):
            out[:] = x
            return 0.0

        def score(self, x):
            return score
    with pytest.raises((TypeError, ValueError), match="must"):
        gw.run(GD, oracles=[Scored()])


# ---- other arrays ----
def test_arrays_of_arguments_are_checked_and_copied():
    payload = gw.Payload.sparse(4, [0, 2], [1.0, 2])
    for out, error in ((np.ones(3), ValueError), (np.ones(4, np.float32), TypeError), (np.ones((2, 2)), ValueError),
                       (read_only(np.ones(4)), ValueError), (strided(np.ones(4), 2), ValueError), ([1.0] * 4, TypeError),
                       (np.ones(4).astype(">f8"), TypeError)):
        with pytest.raises(error):
            payload.add_to(out)
    indices, values = np.array([0, 2]), np.array([1.0, 2])
    payload = gw.Payload.sparse(4, indices, values)
    indices[:], values[:] = 3, 9
    assert payload.dense().tolist() == [1, 0, 2, 0]
    payload.dense()[:] = 5
    payload.values[:] = 5
    assert payload.dense().tolist() == [1, 0, 2, 0]
    x0 = np.arange(12.0)
    assert run_x0(x0[::-1]).tolist() == x0[::-1].tolist() and run_x0(x0.astype(">f4")).tolist() == x0.tolist()
    for wrong in (np.ones((3, 4)), np.ones(11), "text"):
        with pytest.raises((TypeError, ValueError)):
            run_x0(wrong)


def run_x0(x0):
    return gw.run(SMALL, x0=x0, set={"run.rounds": 0}).model


def test_samples_are_copied():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    then = X.copy()
    keys = {"problem.kind": "logistic", "clients.count": 3, "algorithm": {"name": "gd", "step_size": 0.5}, "run.rounds": 10}
    whole = gw.run(keys, data=(X, y))

    def spoil(record):
        X[:] = 1e9
    spoiled = gw.run(keys, data=(X, y), on_record=spoil)
    assert_equal_results(whole, spoiled)
    for layout in (np.asfortranarray(then), then[::-1][::-1], then.astype(">f8"), read_only(then)):
        assert_equal_results(whole, gw.run(keys, data=(layout, y)))


# ---- the module without NumPy's structures ----
def test_the_module_uses_the_buffer_protocol_alone(tmp_path):
    """NumPy is replaced by arrays of the standard library before the module looks for it."""
    run_script("""
import array, sys, types
import gradwire as gw
from gradwire import _core

class ndarray(array.array):
    flags = types.SimpleNamespace(writeable=True)
class dtype(str): pass
CODES = {"float64": "d", "float32": "f", "uint32": "I"}
stand_in = types.ModuleType("numpy")
stand_in.ndarray, stand_in.dtype = ndarray, dtype
stand_in.empty = lambda n, dtype: ndarray(CODES[dtype], bytes(n * array.array(CODES[dtype]).itemsize))
stand_in.asarray = lambda object: object if isinstance(object, array.array) else ndarray("d", object)
sys.modules["numpy"] = stand_in

kept = []
def out_form(x, out):
    assert type(x) is type(out) is ndarray
    for j in range(len(x)): out[j] = x[j] - j
    kept.append((x, out, x.tolist(), out.tolist()))
    return sum(g * g for g in out) / 2
def pair(x): return sum((x[j] - j) ** 2 for j in range(len(x))) / 2, [x[j] - j for j in range(len(x))]
def batch(x, batch, out): return out_form(x, out)
def shrinks(x, out): out.pop(); return 0.0

models = []
for f in (out_form, pair, batch):
    run = _core.run(experiment=gw.Experiment({"algorithm": {"name": "gd", "step_size": 0.5}, "run.rounds": 5,
        "problem": {"kind": "custom", "dim": 6}, "clients.count": 2})._native, oracles=[gw.oracle(f, 6) for _ in range(2)],
        algorithm=None, compressor=None, data=None, test=None, x0=array.array("d", range(1, 7)), smoothness=[], out="",
        transport="memory", threads=1, checkpoint_seconds=0.0, fresh=False, overwrite=False, on_record=None, progress=None,
        log=None, on_failure=lambda result: None, is_main_thread=True)
    models.append(run.model().tolist())
assert models[0] == models[1] == models[2] and len(models[0]) == 6, models
for x, out, x_then, out_then in kept: assert x.tolist() == x_then and out.tolist() == out_then
loss, gradient = _core.call_oracle(gw.oracle(pair, 6), array.array("d", [1.0] * 6), array.array("I"), False)
assert type(gradient) is ndarray and gradient.tolist() == [1.0 - j for j in range(6)]
for wrong, error in ((array.array("f", [1.0] * 6), TypeError), (array.array("d", [1.0] * 5), ValueError)):
    try: _core.call_oracle(gw.oracle(pair, 6), wrong, array.array("I"), False)
    except error as raised: assert "x has" in str(raised)
    else: raise AssertionError(wrong)
try: _core.call_oracle(gw.oracle(shrinks, 6), array.array("d", [1.0] * 6), array.array("I"), False)
except ValueError as raised: assert "out has shape (5,)" in str(raised)
else: raise AssertionError("shrunk")
""", tmp_path)


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
