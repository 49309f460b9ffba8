"""Arrays that functions get and return: who owns them, and which ones are refused."""
import array
import ctypes

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, SMALL, assert_equal_results, run_functions, run_script

FEW = {"run.rounds": 6}


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


def test_a_function_that_uses_another_array_object_in_place_of_out_is_refused():
    def f(x, out):
        out = x * 2  # noqa: F841, a common mistake: the name, not the array
        return 0.0
    with pytest.raises(ValueError, match="out was not written"):
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
    (None, TypeError, "is None; it must be a vector"), ({}, TypeError, "has type object"),
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
