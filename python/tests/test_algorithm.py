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
        g = s.sum(onto=g)
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


class Scaffold(gw.Algorithm):
    """SCAFFOLD (arXiv:1910.06378), option 2, with K local steps of size gamma."""

    def __init__(self, K, gamma):
        self.K, self.gamma = K, gamma

    def start(self, s):
        return np.zeros_like(s.x), np.zeros_like(s.x)

    def broadcast(self, s, x, control):
        return x, control

    def client(self, c, received, c_i):
        x, control = received
        y, real = x.copy(), x.dtype.type
        for _ in range(self.K):
            y -= real(self.gamma) * (c.loss_and_gradient(y)[1] - c_i + control)
        change = real(1) / (real(self.K) * real(self.gamma)) * (x - y) - control
        return (y - x, change), c_i + change

    def server(self, s, x, control):
        return s.mean(0, onto=x), s.sum(1, onto=control)


@pytest.mark.parametrize("transport", ["memory", "encoded"])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_a_broadcast_has_several_vectors(precision, transport):
    keys = {"precision": precision, "algorithm.compressor": "identity", "run.rounds": 30}
    local = {"algorithm.name": "scaffold", "algorithm.step_size": 1, "algorithm.local_steps": 3,
             "algorithm.local_step_size": 0.02}
    theirs = gw.run(SMALL, set=keys | local)
    mine = gw.run(SMALL, set=keys, algorithm=Scaffold(3, 0.02), transport=transport)
    np.testing.assert_array_equal(mine.model, theirs.model)
    for column in ("bits_up", "bits_down", "bytes_up", "bytes_down"):
        np.testing.assert_array_equal(mine.metrics[column], theirs.metrics[column])


class Quantized(gw.Algorithm):
    """Gradient descent whose clients get a compressed x."""

    def __init__(self, spec):
        self.spec, self.bits, self.seen = spec, [], []

    def broadcast(self, s, x, state):
        sent = gw.Compressor(self.spec, len(x))(x, round=s.round)
        self.bits.append(sent.bits)
        self.seen.append(sent.dense())
        return sent

    def client(self, c, x, state):
        np.testing.assert_array_equal(x, self.seen[-1])
        np.testing.assert_array_equal(c.received.dense(), x)
        np.testing.assert_array_equal(c.gradient(), c.gradient(x))
        return c.gradient(), None

    def server(self, s, x, state):
        return x - s.step_size * s.mean(), None


@pytest.mark.parametrize("spec", ["topk:k=4", "natural", "identity"])
def test_a_broadcast_is_compressed_and_costs_its_bits(spec):
    results = []
    for transport in ("memory", "encoded"):
        algorithm = Quantized(spec)
        results.append(gw.run(SMALL, set={"run.rounds": 10}, algorithm=algorithm, transport=transport))
        assert len(algorithm.bits) == 10
        np.testing.assert_allclose(results[-1].metrics.bits_down, [0, *np.cumsum(algorithm.bits)], rtol=1e-12)
    np.testing.assert_array_equal(results[0].model, results[1].model)
    np.testing.assert_array_equal(results[0].metrics.bytes_down, results[1].metrics.bytes_down)


def test_clients_cannot_draw_the_indices_of_a_broadcast():
    memory, encoded = (gw.run(SMALL, set={"run.rounds": 10}, algorithm=Quantized("randk:k=4"), transport=t)
                       for t in ("memory", "encoded"))
    np.testing.assert_array_equal(memory.model, encoded.model)
    assert memory.metrics.bits_down[-1] > 10 * 4 * 64


def test_replies_of_another_compressor_pay_for_its_indices():
    class Other(gw.Algorithm):
        def client(self, c, x, state):
            return gw.Compressor("randk:k=4", len(x))(c.gradient(), round=c.round, client=c.client), None

        def server(self, s, x, state):
            return x - s.step_size * s.mean(), None
    memory, encoded = (gw.run(SMALL, set={"run.rounds": 10, "algorithm.compressor": "randk:k=4"}, algorithm=Other(), transport=t)
                       for t in ("memory", "encoded"))
    np.testing.assert_array_equal(memory.model, encoded.model)
    np.testing.assert_array_equal(memory.metrics.bytes_up, encoded.metrics.bytes_up)


class Chosen(gw.Algorithm):
    """Gradient descent over the clients that `choose` returns."""

    def __init__(self, choose):
        self.choose, self.replied, self.numbers = choose, [], []

    def cohort(self, s):
        self.numbers.append(s.rng.random())
        return self.choose(s)

    def client(self, c, x, state):
        return c.gradient(), None

    def server(self, s, x, state):
        assert s.rng.random() not in self.numbers
        self.replied.append(s.replied)
        return x - s.step_size * s.mean(), None


def test_cohorts():
    algorithm = Chosen(lambda s: sorted({1, s.round % 5, 4}, reverse=True))
    result = gw.run(SMALL, set={"run.rounds": 5}, algorithm=algorithm)
    assert algorithm.replied == [[0, 1, 4], [1, 4], [1, 2, 4], [1, 3, 4], [1, 4]]
    assert np.isclose(result.metrics.bits_up[-1], (3 + 2 + 3 + 3 + 2) * 12 * 64 / 5, rtol=1e-12)
    drawn = [Chosen(lambda s: s.rng.choice(s.clients, 2, replace=False)) for _ in range(2)]
    for algorithm, transport in zip(drawn, ("memory", "encoded")):
        gw.run(SMALL, set={"seed": 7}, algorithm=algorithm, transport=transport)
    assert drawn[0].replied == drawn[1].replied and len(set(map(tuple, drawn[0].replied))) > 5
    sampled = Chosen(lambda s: None)
    gw.run(SMALL, set={"clients.participation": 0.4}, algorithm=sampled)
    assert {len(replied) for replied in sampled.replied} == {2}
    asks_all = Chosen(lambda s: [0])
    asks_all.asks_all = lambda t: t == 0
    gw.run(SMALL, set={"run.rounds": 3}, algorithm=asks_all)
    assert asks_all.replied == [[0, 1, 2, 3, 4], [0], [0]]


@pytest.mark.parametrize("cohort, error, words", [
    ([1, 1], RuntimeError, "different clients below 5"), ([5], RuntimeError, "different clients below 5"),
    ([[1, 2]], ValueError, "the cohort has shape"), ("ab", ValueError, "invalid literal"),
])
def test_wrong_cohorts_are_refused(cohort, error, words):
    with pytest.raises(error, match=words):
        gw.run(SMALL, algorithm=Chosen(lambda s: cohort))


class Unusual(Exception):
    pass


def with_parts(client=lambda c, x, state: (x, None), server=lambda s, x, state: (x, None), start=lambda s: (None, None),
               cohort=None, broadcast=None):
    algorithm = gw.Algorithm()
    algorithm.cohort, algorithm.broadcast = cohort, broadcast
    algorithm.client, algorithm.server, algorithm.start = client, server, start
    return algorithm


def fail(*_):
    raise Unusual("in the algorithm")


@pytest.mark.parametrize("part", ["start", "client", "server", "cohort", "broadcast"])
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
    ({"client": lambda c, x, state: (x[1:], None)}, ValueError, r"the reply that client\(\) returned has shape \(11,\)"),
    ({"client": lambda c, x, state: (x.astype(np.float32), None)}, TypeError, "float32"),
    ({"client": lambda c, x, state: (c.compress(x[1:]), None)}, ValueError, r"v has shape \(11,\)"),
    ({"client": lambda c, x, state: ((x,) * 5, None)}, RuntimeError, "at most 4"),
    ({"client": lambda c, x, state: (gw.Compressor("topk:k=1", 12)(x.astype(np.float32)), None)}, TypeError, "precision"),
    ({"client": lambda c, x, state: (x, lambda: 0)}, Exception, "pickle"),
    ({"server": lambda s, x, state: (x[1:], None)}, ValueError, r"the x that server\(\) returned has shape \(11,\)"),
    ({"server": lambda s, x, state: (s.mean(1), None)}, RuntimeError, "part 1"),
    ({"broadcast": lambda s, x, state: x[1:]}, ValueError, r"what broadcast\(\) returned has shape \(11,\)"),
    ({"broadcast": lambda s, x, state: (x,) * 5}, RuntimeError, "at most 4"),
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
