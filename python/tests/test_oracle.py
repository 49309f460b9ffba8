"""Functions of clients that are written in Python."""
import logging
import threading

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, run_functions


def quadratic(a, form):
    """||x - a||^2 / 2 in one of the three forms."""
    def pair(x):
        return float((x - a) @ (x - a) / 2), x - a

    def out(x, out):
        np.subtract(x, a, out=out)
        return out @ out / 2

    def batch(x, batch, out):
        assert batch.dtype == np.uint32
        return out_(x, out)

    out_ = out
    return {"pair": pair, "out": out, "batch": batch}[form]


POINTS = [np.array([1.0, 0, 4]), np.array([3.0, 0, 0]), np.array([0.0, 8, 0]), np.zeros(3)]


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("form", ["pair", "out", "batch"])
def test_every_form_finds_the_minimum(form, precision):
    points = [p.astype({"fp64": np.float64, "fp32": np.float32}[precision]) for p in POINTS]
    oracles = [gw.oracle(quadratic(p, form), 3) for p in points]
    result = gw.run({"precision": precision, "algorithm": {"name": "ef21", "compressor": "topk:k=1", "step_size": 0.2},
                     "run": {"rounds": 300}}, oracles=oracles)
    np.testing.assert_allclose(result.model, [1, 2, 1], atol=1e-5)
    assert result.model.dtype == points[0].dtype
    assert result.experiment["problem.kind"] == "custom" and result.experiment.n == 4


def test_gives_the_bits_of_the_kind_with_the_same_functions():
    # f_i(x) = (x - c)^2 L / 2 has no rounding that depends on the order of sums, so the bits must agree with the samples of
    # least squares with one feature.
    X, y = np.array([[2.0], [0.5], [4.0], [1.0]]), np.array([1.0, 3.0, -2.0, 0.25])
    of_kind = gw.run({"problem": {"kind": "least_squares"}, "clients": {"count": 4, "partition": "contiguous"},
                      "algorithm": {"name": "gd", "step_size": 0.0625}, "run": {"rounds": 20}}, data=(X, y))

    def function(a, b):
        def f(x, out):
            r = a * x[0] - b
            out[0] = a * r
            return r * r / 2
        return f
    of_python = run_functions([function(a, b) for a, b in zip(X[:, 0], y)], dim=1,
                              experiment={"algorithm": {"name": "gd", "step_size": 0.0625}, "run": {"rounds": 20}})
    np.testing.assert_array_equal(of_kind.model, of_python.model)
    np.testing.assert_array_equal(of_kind.metrics.loss, of_python.metrics.loss)
    np.testing.assert_array_equal(of_kind.metrics.bits_up, of_python.metrics.bits_up)


def test_threads_change_no_bit(least_squares):
    functions = least_squares[2]
    alone = run_functions(functions)
    together = gw.run(GD, oracles=[gw.oracle(f, 10, thread_safe=True) for f in functions], threads=4)
    np.testing.assert_array_equal(alone.model, together.model)


def test_functions_run_on_the_thread_of_the_caller_unless_they_are_thread_safe():
    threads = set()

    def f(x, out):
        threads.add(threading.get_ident())
        out[:] = x
        return 0.0
    run_functions([f] * 8, threads=4)
    assert threads == {threading.get_ident()}


class Unusual(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 4])
def test_an_exception_arrives_unchanged_with_its_traceback(threads, least_squares):
    raised = [Unusual(str(i)) for i in range(4)]
    calls = [0] * 4

    def failing(i):
        def fails_at_last(x, out):
            calls[i] += 1
            if calls[i] == 5:
                raise raised[i]
            return least_squares[2][i](x, out)
        return fails_at_last
    with pytest.raises(Unusual) as error:
        gw.run(GD, oracles=[gw.oracle(failing(i), 10, thread_safe=threads > 1) for i in range(4)], threads=threads)
    assert error.value in raised
    assert error.traceback[-1].name == "fails_at_last"
    assert run_functions(least_squares[2]).outcome == "finished"


def test_a_run_with_a_folder_says_what_an_exception_leaves(tmp_path, least_squares, caplog):
    calls = [0]

    def f(x, out):
        calls[0] += 1
        if calls[0] > 20:
            raise Unusual("late")
        return least_squares[2][0](x, out)
    with pytest.raises(Unusual), caplog.at_level(logging.INFO, "gradwire"):
        run_functions([f], out=tmp_path / "a", experiment=GD)
    assert "the measurements until then are in" in caplog.text


def test_kept_arrays_keep_their_numbers(least_squares):
    kept = []

    def f(x, out):
        loss = least_squares[2][0](x, out)
        kept.append((x, x[2:4], out, x.copy(), out.copy()))
        return loss
    run_functions([f])
    assert len(kept) > 30
    for x, part, out, x_then, out_then in kept:
        np.testing.assert_array_equal(x, x_then)
        np.testing.assert_array_equal(part, x_then[2:4])
        np.testing.assert_array_equal(out, out_then)
    assert len({id(k[0]) for k in kept}) == len(kept)


def test_arrays_that_are_not_kept_are_used_again():
    seen = set()

    def f(x, out):
        seen.add((id(x), id(out)))
        out[:] = x
        return 0.0
    run_functions([f])
    assert len(seen) == 1


def test_x_is_read_only():
    def f(x, out):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        run_functions([f])


def test_an_object_of_a_class_has_all_operations():
    class Mine(gw.Oracle):
        dim, samples = 3, 6
        batches = set()

        def __init__(self, a):
            self.a = a

        def loss_and_gradient(self, x, batch, out):
            self.batches.add(tuple(batch))
            out[:] = x - self.a
            return out @ out / 2

        def loss(self, x, batch):
            return (x - self.a) @ (x - self.a) / 2

        def score(self, x):
            return 3, 4
    result = gw.run({"algorithm": {"name": "gd", "step_size": 1}, "run": {"rounds": 3}},
                    oracles=[Mine(p) for p in POINTS])
    np.testing.assert_allclose(result.model, [1, 2, 1], atol=1e-9)
    assert result.metrics.accuracy[-1] == 0.75
    Mine.batches = set()
    gw.run({"algorithm": {"name": "gd", "step_size": 0.1, "batch": 2}, "run": {"rounds": 5}}, oracles=[Mine(p) for p in POINTS])
    assert any(len(batch) == 2 for batch in Mine.batches)
    with pytest.raises(NotImplementedError):
        class Empty(gw.Oracle):
            dim = 3
        gw.run(GD, oracles=[Empty()])


class Trains(gw.Oracle):
    """||x - a||^2 / 2, with the local steps of fedavg."""
    dim = 3

    def __init__(self, a):
        self.a, self.orders = a, []

    def loss_and_gradient(self, x, batch, out):
        np.subtract(x, self.a, out=out)
        return out @ out / 2

    def train_locally(self, y, training):
        self.orders.append(training)
        losses = []
        gradient = np.empty_like(y)
        for _ in range(training.steps):
            losses.append(self.loss_and_gradient(y, (), gradient))
            y -= y.dtype.type(training.step_size) * gradient
        return losses[0]


FEDAVG = {"algorithm": {"name": "fedavg", "local_steps": 5, "local_step_size": 0.125}, "run": {"rounds": 6}}


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_a_function_that_trains_has_the_bits_of_the_same_steps(precision):
    points = [p.astype({"fp64": np.float64, "fp32": np.float32}[precision]) for p in POINTS]
    mine = [Trains(p) for p in points]
    got = gw.run(FEDAVG, set={"precision": precision}, oracles=mine)
    want = gw.run(FEDAVG, set={"precision": precision}, oracles=[gw.oracle(quadratic(p, "out"), 3) for p in points])
    np.testing.assert_array_equal(got.model, want.model)
    np.testing.assert_array_equal(got.metrics.loss, want.metrics.loss)
    assert [len(m.orders) for m in mine] == [6, 6, 6, 6]
    order = mine[1].orders[2]
    assert (order.round, order.steps, order.epochs, order.batch, order.step_size, order.proximal) == (2, 5, 0, 0, 0.125, 0.0)
    assert len({o.seed for m in mine for o in m.orders}) == 24


def test_a_function_that_does_not_train_leaves_the_steps_to_the_algorithm():
    class Declines(Trains):
        def train_locally(self, y, training):
            return None
    got = gw.run(FEDAVG, oracles=[Declines(p) for p in POINTS])
    np.testing.assert_array_equal(got.model, gw.run(FEDAVG, oracles=[Trains(p) for p in POINTS]).model)


def test_kept_models_of_local_training_keep_their_numbers():
    kept = []

    class Keeps(Trains):
        def train_locally(self, y, training):
            loss = super().train_locally(y, training)
            kept.append((y, y.copy()))
            return loss
    gw.run(FEDAVG, oracles=[Keeps(p) for p in POINTS])
    assert len(kept) == 24
    for y, then in kept:
        np.testing.assert_array_equal(y, then)


@pytest.mark.parametrize("train, error, words", [
    (lambda y: "one", TypeError, r"what train_locally\(\) returned must be a number, not str"),
    (lambda y: y.resize(2, refcheck=False) or 1.0, ValueError, r"y has shape \(2,\); it must have shape \(3,\)"),
    (lambda y: 1 / 0, ZeroDivisionError, "division by zero"),
    (lambda y: y.fill(1), TypeError, "changed y but returned None"),
])
def test_wrong_local_training_is_refused(train, error, words):
    class Wrong(Trains):
        def train_locally(self, y, training):
            return train(y)
    with pytest.raises(error, match=words):
        gw.run(FEDAVG, oracles=[Wrong(p) for p in POINTS])


def test_a_model_that_is_not_finite_after_local_training_ends_the_run():
    class Diverges(Trains):
        def train_locally(self, y, training):
            y[0] = np.nan if training.round == 2 else 1
            return 1.0
    result = gw.run(FEDAVG, oracles=[Diverges(p) for p in POINTS])
    assert result.outcome == "diverged" and result.rounds == 2


@pytest.mark.parametrize("f, error, words", [
    (lambda x: 1.0, TypeError, r"\(loss, gradient\)"),
    (lambda x: (1.0, np.zeros(4)), ValueError, r"the gradient has shape \(4,\); it must have shape \(3,\)"),
    (lambda x: (1.0, np.zeros((3, 1))), ValueError, r"shape \(3, 1\)"),
    (lambda x: (1.0, np.zeros(3, np.float32)), TypeError, "float32; it must have type float64"),
    (lambda x: (1.0, [1, 2, 3]), TypeError, "int64"),
    (lambda x: ("one", np.zeros(3)), TypeError, "the loss must be a number, not str"),
    (lambda x, out: out.fill(0), TypeError, "the loss must be a number, not NoneType"),
])
def test_wrong_results_are_refused(f, error, words):
    with pytest.raises(error, match=words):
        run_functions([f], dim=3)


def test_arrays_of_any_layout_are_taken():
    both = np.zeros((3, 2))

    def f(x):
        both[:, 0] = x - POINTS[0]
        return 0.0, both[:, 0]
    np.testing.assert_allclose(run_functions([f], dim=3, set={"run.rounds": 300}).model, POINTS[0], atol=1e-9)
    assert run_functions([lambda x: (0.0, list(x - POINTS[0]))], dim=3).outcome == "finished"


def test_a_gradient_that_is_not_finite_ends_the_run():
    assert run_functions([lambda x: (0.0, np.full(3, np.nan))], dim=3).outcome == "diverged"


def test_wrong_oracles_are_refused():
    with pytest.raises(TypeError, match=r"gradwire.oracle\(f, dim\)"):
        gw.run(GD, oracles=[lambda x: 0])
    with pytest.raises(ValueError, match="none is given"):
        gw.run(GD, oracles=[])
    with pytest.raises(ValueError, match="has dim 4"):
        gw.run(GD, oracles=[gw.oracle(lambda x: 0, 3), gw.oracle(lambda x: 0, 4)])
    with pytest.raises(TypeError, match="several samples"):
        gw.oracle(lambda x: 0, 3, 5)
    with pytest.raises(TypeError, match="4 arguments"):
        gw.oracle(lambda a, b, c, d: 0, 3)


def test_check_finds_what_is_wrong():
    for form in ("pair", "out", "batch"):
        gw.check(gw.oracle(quadratic(POINTS[0], form), 3))
    gw.check(gw.oracle(quadratic(POINTS[0].astype(np.float32), "out"), 3), precision="fp32")
    with pytest.raises(ValueError, match="does not fit"):
        gw.check(gw.oracle(lambda x: (x @ x, x), 3))
    random = np.random.default_rng(0)
    with pytest.raises(ValueError, match="different results"):
        gw.check(gw.oracle(lambda x: (random.random(), x), 3))
    with pytest.raises(ValueError, match="not finite"):
        gw.check(gw.oracle(lambda x: (np.inf, x), 3))
    loss, gradient = gw.oracle(quadratic(POINTS[0], "pair"), 3).loss_and_gradient(np.zeros(3))
    assert loss == 8.5
    np.testing.assert_array_equal(gradient, -POINTS[0])


def test_check_tries_local_training():
    class Lazy(Trains):
        def train_locally(self, y, training):
            y = y - 1  # noqa: F841, a common mistake: the name, not the array
            return 1.0

    class Forgets(Trains):
        def train_locally(self, y, training):
            y -= 1
    gw.check(Trains(POINTS[0]))
    with pytest.raises(ValueError, match="left y as it was"):
        gw.check(Lazy(POINTS[0]))
    with pytest.raises(ValueError, match="changed y but returned None"):
        gw.check(Forgets(POINTS[0]))


@pytest.mark.parametrize("factor, words", [(-1, "is its sign wrong"), (40, "40 times the right one"), (1.3, r"says -?[\d.]+$")])
def test_check_guesses_the_cause_of_a_wrong_gradient(factor, words):
    def f(x, out):
        out[:] = factor * (x - POINTS[0])
        return (x - POINTS[0]) @ (x - POINTS[0]) / 2
    with pytest.raises(ValueError, match=words):
        gw.check(gw.oracle(f, 3))


def test_exceptions_name_the_client():
    def f(x):
        return 0.0, np.zeros(4)
    with pytest.raises(ValueError) as caught:
        gw.run(GD, oracles=[gw.oracle(quadratic(POINTS[0], "pair"), 3), gw.oracle(f, 3)])
    assert getattr(caught.value, "__notes__", ["in the function of client 1"]) == ["in the function of client 1"]


def test_what_contradicts_the_functions_is_refused():
    oracles = [gw.oracle(quadratic(p, "pair"), 3) for p in POINTS]
    for keys, words in (({"clients.count": 7}, "clients.count is 7, but what the program brings makes it 4"),
                        ({"problem.kind": "logistic"}, "problem.kind is logistic, but .* makes it custom")):
        with pytest.raises(gw.ExperimentError, match=words):
            gw.run(GD, set=keys, oracles=oracles)
    with pytest.raises(gw.ExperimentError, match="clients.count is 7"):
        gw.run(GD | {"clients": {"count": 7}}, oracles=oracles)
    with pytest.raises(TypeError, match="exclude each other"):
        gw.run(GD, oracles=oracles, data=(np.ones((4, 3)), np.ones(4)))
    again = gw.run(GD, oracles=oracles).experiment
    with pytest.raises(gw.ExperimentError, match="problem.kind is 'custom': pass oracles="):
        gw.run(again)
    with pytest.raises(TypeError, match="a list with an oracle for each client"):
        gw.run(GD, oracles=oracles[0])


def test_a_run_within_a_function_of_another_run():
    def f(x, out):
        inner = run_functions([lambda y: (0.0, y)], dim=2, set={"run.rounds": 2})
        out[:] = x + inner.model.sum()
        return 0.0
    assert run_functions([f], dim=3, set={"run.rounds": 3}).outcome == "finished"
