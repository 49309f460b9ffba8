"""The same input gives the same bits: samples in arrays and in files, functions and algorithms in Python and in C++."""
import gradwire as gw
import numpy as np
import pytest
from conftest import SMALL

PARTITIONS = ["contiguous", "iid", "by_label", "dirichlet"]
REAL = {"fp64": np.float64, "fp32": np.float32}
FAULTS = {"faults.lost_replies": 0.25, "faults.lost_requests": 0.1, "faults.duplicates": 0.1,
          "faults.shuffle": True, "server.quorum": 0.6}  # a round does not wait for all, so replies are dropped
CRASHES = FAULTS | {"faults.crashes": 0.15, "faults.state_loss": 0.05, "server.client_state_replicas": True}


def assert_same(one, other, but=()):
    """All columns and the model have equal bits."""
    for name in one.metrics:
        if name not in ("seconds", *but):
            np.testing.assert_array_equal(one.metrics[name], other.metrics[name], err_msg=name)
    np.testing.assert_array_equal(one.model, other.model)
    assert one.model.dtype == other.model.dtype and one.outcome == other.outcome


# ---- samples ----
@pytest.mark.parametrize("precision", REAL)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_samples_in_arrays_have_the_bits_of_a_file(tmp_path, form, partition, precision):
    random = np.random.default_rng(3)
    X = random.normal(size=(61, 7))
    if form == "sparse":
        X *= random.random(X.shape) < 0.3
        X[:, -1] = 1  # the file must have the last column
    y = random.integers(0, 2, 61)
    with open(tmp_path / "data.svm", "w") as file:
        for row, label in zip(X.tolist(), y):
            file.write(f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v) + "\n")
    experiment = gw.Experiment({
        "precision": precision, "problem": {"kind": "logistic", "regularizer": "l2", "lambda": 0.1, "test_share": 0.2},
        "clients": {"count": 4, "partition": partition}, "run.rounds": 10,
        "problem.data": f"libsvm:{tmp_path}/data.svm",
        "algorithm": {"name": "ef21_sgd", "compressor": "topk:k=2", "batch": 3, "step_size": 0.25}})
    if form == "sparse":
        X = pytest.importorskip("scipy.sparse").csr_matrix(X)
    of_file, of_arrays = gw.run(experiment), gw.run(experiment, data=(X, y))
    assert_same(of_file, of_arrays)
    assert of_arrays.experiment["problem.data"] == "given"
    assert len(np.unique(of_file.metrics.loss)) == 11


def test_a_sparse_matrix_of_the_user_does_not_change():
    sparse = pytest.importorskip("scipy.sparse")
    # Columns of a row out of order, and one twice.
    X = sparse.csr_matrix((np.array([1.0, 2, 3, 4]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3))
    parts = [part.copy() for part in (X.data, X.indices, X.indptr)]
    keys = {"problem.kind": "least_squares", "clients.count": 2, "algorithm": {"name": "gd", "step_size": 0.1},
            "run.rounds": 3}
    one = gw.run(keys, data=(X, [1, 2]))
    for now, then in zip((X.data, X.indices, X.indptr), parts):
        np.testing.assert_array_equal(now, then)
    assert_same(one, gw.run(keys, data=(X.toarray(), [1, 2])))


# ---- functions ----
class LooksAtFunctions(gw.Algorithm):
    """Finds the constants of the quadratics of all clients, which their gradients at unit vectors have exactly."""

    def client(self, c, x, state):
        unit = np.zeros_like(x)
        linear = -c.loss_and_gradient(unit)[1][0]
        unit[2] = 1
        _, gradient = c.loss_and_gradient(unit)
        self.constants[c.client] = (gradient[2], gradient[1], linear)
        return x, None

    def server(self, s, x, state):
        return x, None


def lane_sum(terms):
    """The sum of the library: eight running sums; what is left over goes to the first."""
    sums = [0.0] * 8
    whole = len(terms) // 8 * 8
    for j, term in enumerate(terms.tolist()):
        sums[j % 8 if j < whole else 0] += term
    total = 0.0
    for part in sums:
        total += part
    return total


def quadratics(experiment):
    """The functions of the experiment's clients in Python."""
    looks = LooksAtFunctions()
    looks.constants = {}
    gw.run(experiment, algorithm=looks, set={"run.rounds": 1, "algorithm.compressor": "identity", "clients.participation": 1} |
           {key: type(value)(0) for key, value in CRASHES.items() if key.startswith("faults")})
    assert len(set(looks.constants.values())) == experiment.n

    def function(diagonal, neighbour, linear):
        def f(x, out):
            around = np.zeros_like(x)
            around[:-1] += x[1:]
            around[1:] += x[:-1]
            out[:] = diagonal * x + neighbour * around
            curvature = lane_sum(x.astype(np.float64) * out.astype(np.float64))
            out[0] -= linear
            return curvature / 2 - float(linear) * float(x[0])
        return f
    return [function(*looks.constants[i]) for i in range(experiment.n)]


def without_problem(experiment):
    """The keys of the experiment, for functions in Python."""
    return {key: value for key, value in experiment.items() if not key.startswith("problem.")
            and key not in ("run.f_star", "algorithm.mu")}


QUADRATICS = {"problem.dim": 19, "problem.heterogeneity": 0.5, "run.rounds": 25, "clients.count": 5,
              "evaluation.grad_norm": "every"}


@pytest.mark.parametrize("precision", REAL)
@pytest.mark.parametrize("transport", ["memory", "encoded"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("conditions", ["all", "some", "faults"])
def test_a_function_in_python_has_the_bits_of_a_function_in_the_library(precision, transport, threads, conditions):
    keys = {"all": {}, "some": {"clients.participation": 0.6}, "faults": CRASHES}[conditions]
    experiment = gw.Experiment(SMALL, QUADRATICS | {"precision": precision} | keys)
    functions = quadratics(experiment)
    start = np.random.default_rng(1).normal(size=19)
    theirs = gw.run(experiment, x0=start)
    mine = gw.run(without_problem(experiment), x0=start, oracles=[gw.oracle(f, 19, thread_safe=threads > 1) for f in functions],
                  transport=transport, threads=threads)
    assert_same(mine, theirs)


@pytest.mark.parametrize("precision", REAL)
def test_clients_with_functions_in_python_have_the_bits_of_the_library_over_tcp(tmp_path, precision):
    experiment = gw.Experiment(SMALL, QUADRATICS | {"precision": precision, "run.x0": "zeros"})
    functions = quadratics(experiment)
    keys = without_problem(experiment)
    with gw.Server(keys | {"problem.kind": "custom", "problem.dim": 19}, state=tmp_path / "state") as server:
        clients = [gw.Client(server.address, oracle=gw.oracle(f, 19), part=i, parts=5).start()
                   for i, f in enumerate(functions)]
        mine = server.wait(60)
        for client in clients:
            client.wait(60)
    # An encoded run counts the bytes that TCP sends.
    assert_same(mine, gw.run(experiment, x0=np.zeros(19), transport="encoded"))


# ---- algorithms ----
class Ef21(gw.Algorithm):
    def start(self, s):
        return np.zeros_like(s.x), np.zeros_like(s.x)

    def client(self, c, x, g):
        v = c.gradient()
        p = v - g if c.first else c.compress(v - g)
        return p, g + (p if c.first else p.dense())

    def server(self, s, x, g):
        g = s.sum(onto=g)
        return x - x.dtype.type(s.step_size) * g, g

    def asks_all(self, t):
        return t == 0


class Diana(gw.Algorithm):
    alpha = 0.07

    def start(self, s):
        return np.zeros_like(s.x), np.zeros_like(s.x)

    def client(self, c, x, h):
        m = c.compress(c.gradient() - h)
        m.add_to(h, self.alpha)
        return m, h

    def server(self, s, x, h):
        g = s.mean(onto=h)
        return x - x.dtype.type(s.step_size) * g, s.sum(onto=h, scale=self.alpha)


class Scaffold(gw.Algorithm):
    """Clients read the server's control variate from this object, because the broadcast has x alone."""
    steps, local = 3, 0.125

    def start(self, s):
        self.c = np.zeros_like(s.x)
        return self.c, None

    def client(self, c, x, c_i):
        y, rate = x.copy(), x.dtype.type(self.local)
        for _ in range(self.steps):
            y = y - rate * (c.loss_and_gradient(y)[1] - c_i + self.c)
        change = x.dtype.type(1) / (x.dtype.type(self.steps) * rate) * (x - y) - self.c
        return (y - x, change), c_i + change

    def server(self, s, x, state):
        self.c = s.sum(1, onto=self.c)
        return s.mean(0, onto=x), None


CASES = [("ef21", Ef21, compressor) for compressor in ("topk:k=3", "scaled(randk:k=3)", "scaled(natural)", "scaled(permk)",
                                                       "natural(topk:k=4)")]
CASES += [("diana", Diana, compressor) for compressor in ("randk:k=6", "natural", "permk", "randseqk:k=6")]
CASES += [("scaffold", Scaffold, "identity")]
OWN_KEYS = {"ef21": {"step_size": 0.05}, "diana": {"step_size": 0.05, "alpha": Diana.alpha},
            "scaffold": {"step_size": 1.0, "local_steps": Scaffold.steps, "local_step_size": Scaffold.local}}


@pytest.mark.parametrize("precision", REAL)
@pytest.mark.parametrize("conditions", ["all", "some", "faults", "some_with_faults"])
@pytest.mark.parametrize("name, mine, compressor", CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_an_algorithm_in_python_has_the_bits_of_the_library(name, mine, compressor, conditions, precision):
    keys = {"problem": {"kind": "quadratic", "dim": 12, "heterogeneity": 0.7}, "precision": precision,
            "clients.count": 6, "run": {"rounds": 40, "x0": "normal"}, "algorithm.compressor": compressor}
    if "some" in conditions:
        keys["clients.participation"] = 0.5
    if "faults" in conditions:
        keys |= FAULTS
    theirs = gw.run(keys | {"algorithm.name": name} | {f"algorithm.{key}": value for key, value in OWN_KEYS[name].items()},
                    threads=4)
    # SCAFFOLD of the library also sends c. It reports the loss of its first local step.
    but = ("bits_down", "bits_down_paper", "bytes_down", "grad_calls") if name == "scaffold" else ()
    for threads, transport in ((1, "memory"), (4, "encoded")):
        assert_same(gw.run(keys, algorithm=mine(), set={"algorithm.step_size": OWN_KEYS[name]["step_size"]}, threads=threads,
                           transport=transport), theirs, but)
    assert len(np.unique(theirs.metrics.loss)) == 41
    if "faults" in conditions:
        assert (theirs.metrics.replies[1:] < 6).any()


def test_faults_drop_replies_that_algorithms_in_python_have_made():
    calls = []

    class Counts(Ef21):
        def client(self, c, x, g):
            calls.append(c.round)
            return super().client(c, x, g)
    result = gw.run(SMALL, set=FAULTS, algorithm=Counts())
    assert len(calls) > result.metrics.replies.sum()
    with pytest.raises(gw.ExperimentError, match="crashes must be 0"):
        gw.run(SMALL, set={"faults.crashes": 0.1}, algorithm=Counts())
