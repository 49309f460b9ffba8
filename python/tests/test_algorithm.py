"""Algorithms written in Python."""
import gradwire as gw
import numpy as np
import pytest
from conftest import SMALL


class MyEF21(gw.Algorithm):
    def start(self, s):
        return None, np.zeros_like(s.x)

    def client(self, c, x, g):
        v = c.gradient()
        if c.first:
            return v, v
        p = c.compress(v - g)
        return p, g + p.dense()

    def server(self, s, x, g):
        g = s.mean(onto=g)
        return x - s.x.dtype.type(s.step_size) * g, g


@pytest.mark.parametrize("transport", ["memory", "encoded"])
@pytest.mark.parametrize("compressor", ["topk:k=2", "scaled(randk:k=3)"])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_has_the_bits_of_the_algorithm_of_the_library(precision, compressor, transport):
    keys = {"precision": precision, "algorithm.compressor": compressor}
    theirs = gw.run(SMALL, set=keys)
    mine = gw.run(SMALL, set=keys, algorithm=MyEF21(), transport=transport)
    np.testing.assert_array_equal(mine.model, theirs.model)
    for column in ("loss", "grad_norm_sq", "bits_up", "grad_calls"):
        np.testing.assert_array_equal(mine.metrics[column], theirs.metrics[column])
    assert mine.experiment["algorithm.name"] == "custom"


def test_works_with_functions_of_python_and_lost_replies(least_squares):
    oracles = [gw.oracle(f, 10) for f in least_squares[2]]
    experiment = {"algorithm": {"compressor": "topk:k=2", "step_size": 0.1}, "run": {"rounds": 60},
                  "faults": {"lost_replies": 0.2, "lost_requests": 0.1}}
    mine = gw.run(experiment, oracles=oracles, algorithm=MyEF21())
    assert mine.metrics.loss[-1] < mine.metrics.loss[0]


def test_a_sum_is_right_if_some_clients_do_not_reply():
    class Partial(MyEF21):
        def server(self, s, x, g):
            g = s.sum(onto=g)
            return x - s.step_size * g, g

        def asks_all(self, t):
            return t == 0
    keys = {"clients.participation": 0.5}
    mine, theirs = gw.run(SMALL, set=keys, algorithm=Partial()), gw.run(SMALL, set=keys)
    np.testing.assert_array_equal(mine.model, theirs.model)


class Everything(gw.Algorithm):
    """Gradient descent that looks at all members of both contexts, and keeps states of several types."""

    def start(self, s):
        return {"calls": 0, "list": [s.x]}, (0, "text")

    def client(self, c, x, state):
        assert c.clients == 5 and 0 <= c.client < 5
        assert c.first == (state["calls"] == 0)
        assert state["calls"] == c.round
        assert c.step_size == 0.05
        loss, gradient = c.loss_and_gradient(x)
        np.testing.assert_array_equal(gradient, c.gradient())
        assert np.isfinite(loss)
        self.kept = c
        state["calls"] += 1
        return (gradient, gw.Payload.sparse(12, [1, 5], [1.0, c.client])), state

    def server(self, s, x, state):
        assert s.clients == 5 and s.round == state[0] and state[1] == "text"
        np.testing.assert_array_equal(s.x, x)
        assert s.replied == list(range(5)) and len(s.replies) == 5
        first, second = s.replies[4]
        assert second.indices.tolist() == [1, 5] and second.values.tolist() == [1.0, 4.0]
        for mean in (s.mean(1), s.sum(1)):
            assert mean[5] == 2 and np.isclose(mean[1], 1)
        np.testing.assert_array_equal(s.mean(0, onto=x), x + s.mean(0))
        return x - s.step_size * s.mean(0), (state[0] + 1, "text")


def test_contexts_and_states():
    algorithm = Everything()
    mine = gw.run(SMALL, set={"algorithm.compressor": "identity"}, algorithm=algorithm)
    theirs = gw.run(SMALL, set={"algorithm.name": "gd", "algorithm.compressor": "identity"})
    np.testing.assert_array_equal(mine.model, theirs.model)
    with pytest.raises(RuntimeError, match="the round of this context is over"):
        algorithm.kept.gradient()


def test_random_numbers_depend_on_the_round_alone():
    class Random(gw.Algorithm):
        def client(self, c, x, state):
            drawn.append((c.round, c.client, c.rng.random()))
            return x, None

        def server(self, s, x, state):
            return x + s.rng.normal(size=len(x)), None
    draws = []
    for _ in range(2):
        drawn = []
        result = gw.run(SMALL, set={"run.rounds": 3}, algorithm=Random())
        draws.append((sorted(drawn), result.model.tolist()))
    assert draws[0] == draws[1] and len({d for _, _, d in draws[0][0]}) == 15


class Unusual(Exception):
    pass


def with_parts(client=lambda c, x, state: (x, None), server=lambda s, x, state: (x, None), start=lambda s: (None, None)):
    algorithm = gw.Algorithm()
    algorithm.client, algorithm.server, algorithm.start = client, server, start
    return algorithm


def fail(*_):
    raise Unusual("in the algorithm")


@pytest.mark.parametrize("part", ["start", "client", "server"])
def test_exceptions_arrive_unchanged(part):
    with pytest.raises(Unusual) as error:
        gw.run(SMALL, algorithm=with_parts(**{part: fail}))
    assert error.traceback[-1].name == "fail"


def test_an_exception_of_a_function_passes_through_the_algorithm():
    def f(x):
        raise Unusual("in the function")
    caught = []

    def client(c, x, state):
        try:
            c.gradient()
        except Unusual as error:
            caught.append(error)
            raise
    with pytest.raises(Unusual) as error:
        gw.run({"algorithm": {"step_size": 1}}, oracles=[gw.oracle(f, 3)], algorithm=with_parts(client),
               set={"evaluation.grad_norm": "none", "run.evaluate_every": 0})
    assert caught == [error.value]


@pytest.mark.parametrize("parts, error, words", [
    ({"client": lambda c, x, state: x}, TypeError, r"must return \(reply, state\)"),
    ({"client": lambda c, x, state: (x[1:], None)}, ValueError, r"a reply has shape \(11,\)"),
    ({"client": lambda c, x, state: (x.astype(np.float32), None)}, TypeError, "float32"),
    ({"client": lambda c, x, state: (c.compress(x[1:]), None)}, ValueError, r"v has shape \(11,\)"),
    ({"client": lambda c, x, state: ((x,) * 5, None)}, RuntimeError, "at most 4"),
    ({"client": lambda c, x, state: (gw.Compressor("topk:k=1", 12)(x.astype(np.float32)), None)}, TypeError, "precision"),
    ({"client": lambda c, x, state: (x, lambda: 0)}, Exception, "pickle"),
    ({"server": lambda s, x, state: (x[1:], None)}, ValueError, r"x has shape \(11,\)"),
    ({"server": lambda s, x, state: (s.mean(1), None)}, RuntimeError, "part 1"),
    ({"start": lambda s: None}, TypeError, r"start\(s\) must return"),
])
def test_wrong_results_are_refused(parts, error, words):
    with pytest.raises(error, match=words):
        gw.run(SMALL, algorithm=with_parts(**parts))


def test_an_algorithm_is_an_object_and_needs_a_number_as_step():
    with pytest.raises(TypeError, match="algorithm.name"):
        gw.run(SMALL, algorithm="ef21")
    with pytest.raises(NotImplementedError):
        gw.run(SMALL, algorithm=gw.Algorithm())
    with pytest.raises(gw.ExperimentError, match="step_size"):
        gw.run(SMALL, set={"algorithm.step_size": "theory"}, algorithm=MyEF21())


def test_resumes_with_its_states(tmp_path):
    whole = gw.run(SMALL, algorithm=MyEF21())

    class Stops(MyEF21):
        def server(self, s, x, g):
            rounds.append(s.round)
            if s.round == 20 and stop:
                raise KeyboardInterrupt
            return super().server(s, x, g)
    stop, rounds = True, []
    with pytest.raises(KeyboardInterrupt):
        gw.run(SMALL, algorithm=Stops(), out=tmp_path / "a", checkpoint_seconds=1e-9)
    stop = False
    rounds.clear()
    with pytest.raises(gw.ExperimentError, match="another algorithm"):
        gw.run(SMALL, algorithm=MyEF21(), out=tmp_path / "a")
    np.testing.assert_array_equal(gw.run(SMALL, algorithm=Stops(), out=tmp_path / "a").model, whole.model)
    assert rounds[0] > 0


# ---- compressors and the tape ----
def test_compressors_and_payloads():
    v = np.array([3.0, -1, 0, 5, 2])
    topk = gw.Compressor("topk:k=40%", 5)
    assert topk.spec == "topk:k=2" and topk.alpha == 0.4 and not topk.unbiased
    payload = topk(v)
    assert payload.indices.tolist() == [0, 3] and payload.values.tolist() == [3, 5]
    assert payload.dense().tolist() == [3, 0, 0, 5, 0] and payload.paper_bits == 64
    out = np.ones(5)
    payload.add_to(out, -1)
    assert out.tolist() == [-2, 1, 1, -4, 1]
    assert topk(v.astype(np.float32)).dense().dtype == np.float32
    randk = gw.Compressor("randk:k=2", 5)
    assert randk.unbiased and randk.omega == 1.5
    assert [randk(v, seed=1, round=3).indices.tolist()] * 2 == [randk(v, seed=1, round=3).indices.tolist()] * 2
    assert len({tuple(randk(v, round=r).indices) for r in range(20)}) > 1
    made = gw.Payload.sparse(4, [0, 2], np.array([1, 2], np.float32))
    assert made.dense().dtype == np.float32 and made.dim == 4
    with pytest.raises(gw.ExperimentError, match="did you mean"):
        gw.Compressor("topq:k=2", 5)
    with pytest.raises(RuntimeError):
        topk(np.ones(4))
    with pytest.raises(RuntimeError):
        gw.Payload.sparse(4, [2, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        made.add_to(np.ones(3, np.float32))


def test_tape_against_derivatives_by_hand():
    tape = gw.Tape()
    a, b = tape.variable(-4.0), tape.variable(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert round(g.value, 4) == 24.7041 and round(a.grad, 4) == 138.8338 and round(b.grad, 4) == 645.5773
    x = tape.variable(0.3)
    for name, derivative in [("tanh", 1 - np.tanh(0.3)**2), ("exp", np.exp(0.3)), ("log", 1 / 0.3), ("sin", np.cos(0.3)),
                             ("sqrt", 0.5 / np.sqrt(0.3)), ("sqr", 0.6)]:
        getattr(x, name)().backward()
        assert np.isclose(x.grad, derivative), name
    gw.Tape.log_sum_exp([x, x]).backward()
    assert np.isclose(x.grad, 1) and float(x) == 0.3
    assert np.isclose(sum(share.value for share in gw.Tape.softmax([a, b, x])), 1)
    (2**x - abs(a) / x + x.max(1) * x.min(b)).backward()
    with pytest.raises(RuntimeError):
        gw.Tape.sum([x, gw.Tape().variable(1)])
    with pytest.raises(ValueError):
        gw.Tape.sum([])


def test_tape_forgets_at_checkpoints():
    tape = gw.Tape(2)
    tape.parameter_values = np.array([1.0, 2.0])
    for x in range(3):
        with tape.checkpoint():
            p = tape.parameters()
            ((p[0] + p[1] * x) ** 2).backward()
    assert tape.parameter_gradients.tolist() == [2 * (1 + 3 + 5), 2 * (3 + 10)]
    with pytest.raises(RuntimeError):
        _ = (p[0] * p[1]) and (p[0] + p[1] * 3).grad
    var = gw.Tape().variable(3)  # a Var keeps its tape alive
    (var * 2).backward()
    assert var.grad == 2
