"""Sweeps over functions, algorithms, compressors and samples of Python."""
import threading

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, SMALL
from test_algorithm import MyEF21
from test_compressor import TopK

STEPS = {"algorithm.step_size": [0.02, 0.05], "seed": [1, 2]}


def assert_equal_runs(swept, single):
    np.testing.assert_array_equal(swept.model, single.model)
    for name in ("loss", "grad_norm_sq", "bits_up", "bytes_up"):
        np.testing.assert_array_equal(swept.metrics[name], single.metrics[name])


def test_failed_runs_are_not_silent():
    with pytest.warns(UserWarning, match="1 of 2 runs failed, the first one so: .*k = 2000"):
        sweep = gw.sweep(SMALL, {"algorithm.compressor": ["topk:k=1", "topk:k=2000"]})
    assert len(sweep.failed) == 1 and len(sweep) == 2
    with pytest.raises(gw.RunError, match="all 2 runs failed, the first one so: .*no-such-file"):
        gw.sweep({"problem": {"kind": "logistic", "data": "libsvm:no-such-file"}, "algorithm": {"name": "gd"}}, {"seed": [1, 2]})


def test_functions_have_the_bits_of_single_runs(least_squares):
    threads = set()

    def watched(f):
        def g(x, out):
            threads.add(threading.get_ident())
            return f(x, out)
        return g
    oracles = [gw.oracle(watched(f), 10) for f in least_squares[2]]
    sweep = gw.sweep(GD, {"algorithm.step_size": [0.05, 0.1, 0.2]}, oracles=oracles, jobs=4)
    assert threads == {threading.get_ident()} and sweep.failed == []
    for result, values in zip(sweep, sweep.values):
        assert_equal_runs(result, gw.run(GD, set=values, oracles=oracles))
    last = [result.metrics.grad_norm_sq[-1] for result in sweep]
    assert sweep.best().tuned == [f"algorithm.step_size = {[0.05, 0.1, 0.2][np.argmin(last)]}"]
    assert sweep.best().median == [min(last)]


def test_safe_functions_have_the_same_bits_on_threads(least_squares):
    oracles = [gw.oracle(f, 10, thread_safe=True) for f in least_squares[2]]
    sweep = gw.sweep(GD, {"algorithm.step_size": [0.05, 0.1]}, oracles=oracles, jobs=4)
    for result, values in zip(sweep, sweep.values):
        assert_equal_runs(result, gw.run(GD, set=values, oracles=oracles))


def test_algorithms_and_compressors_are_compared_with_those_of_the_library():
    sweep = gw.sweep(SMALL, {"algorithm.name": ["custom", "ef21"], "algorithm.compressor": ["custom:TopK", "topk:k=3"]} | STEPS,
                     algorithm=MyEF21(), compressor=TopK(3))
    assert len(sweep) == 16 and sweep.failed == []
    for result, values in zip(sweep, sweep.values):
        keys = values | {"algorithm.name": "ef21", "algorithm.compressor": "topk:k=3"}
        assert_equal_runs(result, gw.run(SMALL, set=keys))
    assert len(sweep.best().algorithm) == 4 and len(set(sweep.best().median)) == 1


def test_states_start_from_the_start_point_of_each_run():
    class Starts(gw.Algorithm):
        def start(self, s):
            return s.x, s.x

        def client(self, c, x, start):
            return x - start, start

        def server(self, s, x, start):
            return start + s.mean() + s.step_size, start
    grid = {"run.x0": ["zeros", "normal"], "precision": ["fp64", "fp32"]}
    sweep = gw.sweep(SMALL, grid, algorithm=Starts())
    assert len(sweep) == 4 and sweep.failed == []
    for result, values in zip(sweep, sweep.values):
        assert_equal_runs(result, gw.run(SMALL, set=values, algorithm=Starts()))


def samples():
    random = np.random.default_rng(3)
    return random.normal(size=(60, 4)).round(6), np.sign(random.normal(size=60))


def test_given_samples_have_the_bits_of_a_file(tmp_path):
    X, y = samples()
    file = tmp_path / "x.csv"
    file.write_text("".join(",".join(map(repr, map(float, row))) + f",{label:g}\n" for row, label in zip(X, y)))
    keys = {"problem": {"kind": "logistic"}, "clients": {"count": 3, "partition": "iid"},
            "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 20}}
    grid = {"algorithm.step_size": [0.5, "theory"], "seed": [1, 2]}
    theirs = gw.sweep(keys, grid, data=f"csv:{file}", jobs=2)
    for data in ((X, y), file.read_text()):
        mine = gw.sweep(keys, grid, data=data, test=(X[:9], y[:9]), jobs=2)
        for a, b in zip(mine, theirs):
            assert_equal_runs(a, b)
            assert not np.isnan(a.metrics.accuracy[-1])
        assert mine.values == theirs.values and mine.best().median == theirs.best().median


class Unusual(Exception):
    pass


def test_the_start_and_the_constants_of_the_oracles_are_used(least_squares):
    L_i = [float(np.linalg.norm(a, 2)) ** 2 / 50 for a in least_squares[0]]
    oracles = [gw.oracle(f, 10, smoothness=L, start=np.full(10, 0.5)) for L, f in zip(L_i, least_squares[2])]
    sweep = gw.sweep(GD, {"algorithm.step_size": ["theory", 0.05]}, oracles=oracles)
    for result, values in zip(sweep, sweep.values):
        assert_equal_runs(result, gw.run(GD, set=values, oracles=oracles))
    moved = gw.sweep(GD, {"algorithm.step_size": [0.05]}, oracles=oracles, x0=np.ones(10))
    assert_equal_runs(moved[0], gw.run(GD, set={"algorithm.step_size": 0.05}, oracles=oracles, x0=np.ones(10)))
    with pytest.raises(gw.RunError, match="the run: the start point has 2 numbers, but the model has 10"):
        gw.sweep(GD, {"seed": [1]}, oracles=oracles, x0=[1, 2])


def test_a_folder_of_other_functions_is_refused(least_squares, tmp_path):
    oracles = [gw.oracle(f, 10) for f in least_squares[2]]
    out = tmp_path / "sweep"
    first = gw.sweep(GD, {"seed": [1]}, oracles=oracles, out=out)
    assert_equal_runs(gw.sweep(GD, {"seed": [1]}, oracles=oracles, out=out)[0], first[0])
    with pytest.raises(gw.ExperimentError, match="other functions, samples"):
        gw.sweep(GD, {"seed": [1]}, oracles=oracles[::-1], out=out)
    gw.sweep(GD, {"seed": [1]}, oracles=oracles[::-1], out=out, fresh=True)


def test_the_rule_for_the_best_runs_can_be_given(least_squares):
    oracles = [gw.oracle(f, 10) for f in least_squares[2]]
    sweep = gw.sweep(GD, STEPS, oracles=oracles, criterion="loss", budget="round = 3", tune=["seed"])
    assert len(sweep.best().algorithm) == 2 and set(sweep.best().tuned) == {"seed = 1"}
    assert sweep.best().median == [sweep[run[0]].metrics.loss[3] for run in sweep.best().runs]
    with pytest.raises(gw.ExperimentError, match="did you mean 'loss'"):
        gw.sweep(GD, STEPS, oracles=oracles, criterion="lose")


def test_an_exception_ends_the_sweep(least_squares, tmp_path):
    calls = []

    def f(x):
        calls.append(1)
        raise Unusual("in the function")
    with pytest.raises(Unusual) as error:
        gw.sweep(GD, {"seed": list(range(20))}, oracles=[gw.oracle(f, 10)], out=tmp_path / "sweep")
    assert error.traceback[-1].name == "f" and len(calls) == 1
    # The next call runs all.
    sweep = gw.sweep(GD, {"seed": [0, 1]}, oracles=[gw.oracle(lambda x: (0.5 * x @ x, x), 10)], out=tmp_path / "sweep")
    assert sweep.failed == [] and [result.outcome for result in sweep] == ["finished"] * 2


def test_wrong_parts_are_refused_as_by_run():
    with pytest.raises(TypeError, match="key algorithm.name"):
        gw.sweep(SMALL, STEPS, algorithm="ef21")
    with pytest.raises(ValueError, match="none is given"):
        gw.sweep(GD, STEPS, oracles=[])
    sweep = gw.sweep(SMALL, {"algorithm.name": ["ef21", "marina"]}, set={"algorithm.step_size": "theory"}, compressor=TopK(3))
    assert len(sweep.failed) == 1 and "unbiased" in sweep.failed[0]
