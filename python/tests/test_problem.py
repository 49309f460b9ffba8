"""gw.Problem, and what functions of Python say about themselves: smoothness, start and Hessian."""
import gradwire as gw
import numpy as np
import pytest
from conftest import GD

LOGISTIC = {"problem": {"kind": "logistic", "data": "synthetic", "samples": 90, "dim": 13, "regularizer": "l2", "lambda": 0.1,
                        "test_share": 0.2}, "clients": {"count": 4}}
EF21 = {"algorithm": {"name": "ef21", "compressor": "topk:k=2", "step_size": 0.25}, "run": {"rounds": 30}}
MLP = {"problem": {"kind": "mlp", "data": "synthetic", "samples": 40, "dim": 5, "hidden": "[4]"}, "clients": {"count": 3}}
QUADRATIC = {"problem": {"kind": "quadratic", "dim": 12, "heterogeneity": 0.7}, "clients": {"count": 5}}


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("problem", [LOGISTIC, MLP, QUADRATIC], ids=lambda p: p["problem"]["kind"])
def test_a_run_of_its_oracles_has_the_bits_of_the_kind(problem, precision):
    for options in ({"threads": 1}, {"threads": 4}, {"transport": "encoded"}):
        kind = gw.run(problem | EF21, set={"precision": precision}, **options)
        mine = gw.run(EF21, set={"precision": precision}, oracles=gw.Problem(problem), **options)
        np.testing.assert_array_equal(mine.model, kind.model)
        for name in kind.metrics:
            if name not in ("seconds", "sim_seconds"):
                np.testing.assert_array_equal(mine.metrics[name], kind.metrics[name], err_msg=name)


def test_is_a_sequence_of_oracles_that_can_be_called():
    problem = gw.Problem(LOGISTIC)
    assert len(problem) == 4 and problem.dim == 13 and problem[-1] is problem[3] and len(problem[1:3]) == 2
    with pytest.raises(IndexError):
        problem[4]
    assert sum(oracle.samples for oracle in problem) == 72
    x = np.linspace(-1, 1, 13)
    for oracle in problem:
        gw.check(oracle)
        loss, gradient = oracle.loss_and_gradient(x)
        out = np.empty(13)
        assert oracle.loss_and_gradient(x, out=out)[0] == loss == oracle.loss(x)
        np.testing.assert_array_equal(out, gradient)
        some = [oracle.loss_and_gradient(x, [j])[0] for j in (0, 3)]
        assert np.isclose(oracle.loss(x, [0, 3]), np.mean(some))
        correct, tested = oracle.score(x)
        assert 0 <= correct <= tested
        narrow = oracle.loss_and_gradient(x.astype(np.float32))
        assert narrow[1].dtype == np.float32 and np.isclose(narrow[0], loss)
        hessian, step = oracle.hessian(x), 1e-6 * np.ones(13)
        assert (hessian == hessian.T).all()
        np.testing.assert_allclose(hessian @ step, oracle.loss_and_gradient(x + step)[1] - gradient, atol=1e-11)
    assert gw.Problem(MLP)[0].hessian(gw.Problem(MLP).start) is None
    with pytest.raises(ValueError, match="shape"):
        problem[0].loss(np.ones(3))
    with pytest.raises(ValueError, match="sample 99 does not exist"):
        problem[0].loss(x, [99])


def test_has_the_constants_the_start_and_the_minimum():
    problem = gw.Problem(LOGISTIC)
    L, L_i, mu, estimated = problem.constants
    assert 0.1 <= mu < L <= max(L_i) and len(L_i) == 4 and not estimated
    run = gw.run(LOGISTIC | {"algorithm": {"name": "gd"}}, set={"run.rounds": 2000})
    assert run.resolved["algorithm.step_size"] == 1 / L
    assert abs(problem.f_star - run.metrics.loss[-1]) < 1e-12 and gw.f_star(LOGISTIC) == problem.f_star
    assert abs(problem.loss(run.model) - problem.f_star) < 1e-12 and np.linalg.norm(problem.gradient(run.model)) < 1e-6
    mlp = gw.Problem(MLP)
    assert mlp.f_star is None and mlp.constants.estimated
    start = gw.run(MLP | GD, set={"run.rounds": 0})
    np.testing.assert_array_equal(mlp.start, start.model)
    assert np.isclose(mlp.loss(mlp.start), start.metrics.loss[0])


def test_takes_samples_and_experiments():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(40, 3)), random.normal(size=40)
    problem = gw.Problem({"problem": {"kind": "least_squares"}, "clients": {"count": 4, "partition": "contiguous"}}, data=(X, y))
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.isclose(problem.f_star, np.mean((X @ best - y) ** 2) / 2, rtol=1e-12)
    assert np.isclose(problem.constants.L, np.linalg.norm(X, 2) ** 2 / 40)
    np.testing.assert_allclose(problem[1].loss_and_gradient(best)[1], X[10:20].T @ (X[10:20] @ best - y[10:20]) / 10)
    assert len(gw.Problem(gw.Experiment(QUADRATIC | GD))) == 5
    assert len(gw.Problem("quadratics", set={"clients.count": 3})) == 3
    with pytest.raises(gw.ExperimentError, match="did you mean"):
        gw.Problem({"problem": {"kind": "quadratc"}})
    with pytest.raises(gw.ExperimentError, match="custom"):
        gw.Problem({"problem": {"kind": "custom", "dim": 3}})


# ---- functions of Python ----
def distance(a, **options):
    return gw.oracle(lambda x: (float((x - a) @ (x - a)) / 2, x - a), len(a), **options)


POINTS = [np.array([1.0, 0, 4]), np.array([3.0, 0, 0])]
THEORY = {"algorithm": {"name": "gd"}, "run": {"rounds": 1}}


def test_theory_uses_the_smoothness_of_functions():
    stated = gw.run(THEORY, oracles=[distance(a, smoothness=L) for a, L in zip(POINTS, (1, 3))])
    assert stated.resolved["algorithm.step_size"] == 0.5 and stated.warnings == []
    for oracles in ([distance(a) for a in POINTS], [distance(POINTS[0], smoothness=3), distance(POINTS[1])]):
        estimated = gw.run(THEORY, oracles=oracles)
        assert np.isclose(estimated.resolved["algorithm.step_size"], 1, rtol=0.15) and "estimates" in estimated.warnings[0]
    with pytest.raises(gw.ExperimentError, match="client 1 is 0"):
        gw.run(THEORY, oracles=[distance(a, smoothness=L) for a, L in zip(POINTS, (1, 0))])


def test_a_run_starts_where_the_functions_say():
    start = np.array([5.0, 6, 7])

    def first(*oracles, **options):
        return gw.run(GD, oracles=oracles, **{"set": {"run.rounds": 0}, **options}).model.tolist()
    assert first(distance(POINTS[0], start=start), distance(POINTS[1], start=list(start))) == [5, 6, 7]
    assert first(distance(POINTS[0]), distance(POINTS[1], start=start)) == [5, 6, 7]
    assert first(distance(POINTS[0], start=start), x0=np.ones(3)) == [1, 1, 1]
    normal = first(distance(POINTS[0], start=start), set={"run.rounds": 0, "run.x0": "normal"})
    assert normal != [5, 6, 7] and normal == first(distance(POINTS[0]), set={"run.rounds": 0, "run.x0": "normal"})
    with pytest.raises(ValueError, match="number 1 states another start than number 0"):
        first(distance(POINTS[0], start=start), distance(POINTS[1], start=start + 1))


@pytest.mark.parametrize("form", ["matrix", "upper triangle"])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_fednl_runs_on_functions_with_hessians(form, precision):
    real = {"fp64": np.float64, "fp32": np.float32}[precision]

    class Quadratic(gw.Oracle):
        def __init__(self, seed):
            factor = np.random.default_rng(seed).normal(size=(6, 4))
            self.A, self.b, self.dim = (factor.T @ factor).astype(real), np.arange(4).astype(real) + seed, 4

        def loss_and_gradient(self, x, batch, out):
            out[:] = self.A @ x - self.b
            return x @ (out - self.b) / 2

        def hessian(self, x):
            return self.A if form == "matrix" else self.A[np.triu_indices(4)]
    oracles = [Quadratic(seed) for seed in (1, 2)]
    fednl = {"precision": precision, "algorithm": {"name": "fednl", "compressor": "rankr:r=1"}, "run": {"rounds": 2}}
    result = gw.run(fednl, oracles=oracles)
    expected = np.linalg.solve(oracles[0].A + oracles[1].A, oracles[0].b + oracles[1].b)
    np.testing.assert_allclose(result.model, expected, rtol=1e-9 if precision == "fp64" else 1e-3)
    with pytest.raises(gw.ExperimentError, match="fednl needs Hessians, and the function of client 0 has none"):
        gw.run(fednl, oracles=[gw.oracle(lambda x, out: 0.0, 4)])
    Quadratic.hessian = lambda self, x: self.A[:3]
    with pytest.raises(ValueError, match=r"the Hessian has shape \(3, 4\)"):
        gw.run(fednl, oracles=oracles)
