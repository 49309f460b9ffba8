"""gw.run and gw.Result."""
import logging
import os
import pickle
import signal
import threading
import time
import xml.etree.ElementTree

import gradwire as gw
import numpy as np
import pytest
from conftest import SMALL, gradwire, run_functions

PROBLEM = """name = "same"
precision = "{precision}"
[problem]
kind = "logistic"
data = "synthetic"
samples = 90
dim = 13
test_share = 0.2
regularizer = "nonconvex"
lambda = 0.05
[clients]
count = 4
partition = "dirichlet"
dirichlet_alpha = 1.0
weights = "equal"
[run]
rounds = 9
evaluate_every = 2
[algorithm]
name = "{name}"
"""


def same_numbers(one, other):
    assert list(one) == list(other)
    for name in one:
        if name not in ("seconds", "sim_seconds"):
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def experiment_text(row, precision):
    """An experiment that the algorithm accepts: with the steps of theory if there are any, and else with numbers."""
    text = PROBLEM.format(name=row["name"], precision=precision) + ("batch = 5\n" if row["batch"] else "")
    parameters = [p.partition("=") for p in row["parameters"].split(", ")]
    numbers = "".join(f"{name} = 0.25\n" for name, _, default in parameters if default in ("", "theory"))
    if "step_size" not in numbers:
        numbers += "step_size = 0.25\n"
    buffer = "buffer = 2\n" if any(p[0] == "buffer" for p in parameters) else ""
    for compressor in ("identity", "topk:k=3", "randk:k=3", "rank:k=3"):
        for parameters in ("", numbers):
            try:
                experiment = text + f'compressor = "{compressor}"\n' + parameters + buffer
                gw.run(experiment)
                return experiment
            except gw.ExperimentError:
                continue
    raise AssertionError(f"no experiment for {row['name']}")


ALGORITHMS = [dict(zip(gw.algorithms(), row)) for row in gw.algorithms()._rows()]


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row["name"])
def test_has_the_bits_of_gradwire_run(tmp_path, row, precision):
    text = experiment_text(row, precision)
    (tmp_path / "same.toml").write_text(text)
    gradwire(tmp_path, "run", "same.toml", "--quiet", "--out", "program")
    result = gw.run(tmp_path / "same.toml", threads=3)
    program = gw.read(tmp_path / "program")
    assert result.model.dtype == program.model.dtype == {"fp64": np.float64, "fp32": np.float32}[precision]
    np.testing.assert_array_equal(result.model, program.model)
    same_numbers(result.metrics, program.metrics)
    assert result.resolved["algorithm.step_size"] == program.resolved["algorithm.step_size"]


def test_result_has_what_the_run_measured():
    result = gw.run(SMALL)
    assert (result.outcome, result.rounds, result.trouble) == ("finished", 40, "")
    assert result.metrics.loss.dtype == np.float64 and len(result.metrics.loss) == 41
    assert result.metrics["loss"] is result.metrics.loss
    assert np.isnan(result.metrics.accuracy).all()
    assert result.model.shape == (12,)
    assert result.summary["outcome"] == "finished"
    assert result.experiment["run.rounds"] == 40
    assert "40 rounds" in repr(result)
    with pytest.raises(AttributeError, match="no column 'los'"):
        result.metrics.los
    theory = gw.run(SMALL, set={"algorithm.step_size": "theory"}, seed=3)
    assert theory.experiment["seed"] == 3
    assert theory.experiment["algorithm.step_size"] == "theory"
    assert isinstance(theory.resolved["algorithm.step_size"], float)


def test_results_are_saved_read_and_pickled(tmp_path):
    result = gw.run(SMALL, set={"precision": "fp32"})
    result.save(tmp_path / "saved")
    for copy in (gw.read(tmp_path / "saved"), pickle.loads(pickle.dumps(result))):
        np.testing.assert_array_equal(copy.model, result.model)
        assert copy.model.dtype == np.float32
        for name in result.metrics:
            np.testing.assert_array_equal(copy.metrics[name], result.metrics[name])
        assert copy.summary == result.summary and copy.outcome == "finished" and copy.seconds == result.seconds
    assert pickle.loads(pickle.dumps(result)).experiment == result.experiment
    with pytest.raises(gw.ExperimentError, match="no results here"):
        gw.read(tmp_path)


def test_to_pandas():
    pandas = pytest.importorskip("pandas")
    frame = gw.run(SMALL).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.shape[0] == 41 and frame.loss.iloc[-1] < frame.loss.iloc[0]


def test_a_diverged_run_returns():
    result = gw.run(SMALL, set={"algorithm.step_size": 1000.0, "run.rounds": 5000})
    assert result.outcome == "diverged" and "theory" in result.trouble


def test_start_point_transport_and_options(tmp_path):
    x0 = np.arange(12.0)
    result = gw.run(SMALL, x0=x0, set={"run.rounds": 0})
    np.testing.assert_array_equal(result.model, x0)
    with pytest.raises(gw.ExperimentError, match="x0"):
        gw.run(SMALL, x0=np.zeros(3))
    memory, encoded = gw.run(SMALL), gw.run(SMALL, transport="encoded")
    np.testing.assert_array_equal(memory.model, encoded.model)
    with pytest.raises(ValueError, match="gradwire.Server"):
        gw.run(SMALL, transport="tcp")


def test_a_folder_is_resumed_and_not_replaced_by_other_results(tmp_path):
    out = tmp_path / "run"
    ended = gw.run(SMALL, out=out)
    same_numbers(gw.read(out).metrics, ended.metrics)
    with pytest.raises(gw.ExperimentError, match="algorithm.step_size"):
        gw.run(SMALL, out=out, set={"algorithm.step_size": 0.01})
    gw.run(SMALL, out=out, set={"algorithm.step_size": 0.01}, overwrite=True)
    assert gw.read(out).resolved["algorithm.step_size"] == 0.01


def test_on_record_sees_rows_and_ends_the_run():
    seen = []
    result = gw.run(SMALL, on_record=lambda r: seen.append(r) or r.round == 7)
    assert result.outcome == "reached_target" and result.rounds == 7
    assert [r.round for r in seen] == list(range(8))
    for name in gw.Record._fields:
        np.testing.assert_array_equal([getattr(r, name) for r in seen], result.metrics[name])


class Unusual(Exception):
    pass


def test_an_exception_of_on_record_arrives_unchanged():
    raised = Unusual("in on_record")

    def fail(record):
        if record.round == 3:
            raise raised
    with pytest.raises(Unusual) as error:
        gw.run(SMALL, on_record=fail)
    assert error.value is raised
    assert error.traceback[-1].name == "fail"


def test_lines_of_a_run_go_to_the_logger(caplog, tmp_path):
    with caplog.at_level(logging.INFO, "gradwire"):
        gw.run(SMALL, set={"algorithm.step_size": "theory"}, out=tmp_path / "a")
        gw.run(SMALL, set={"algorithm.step_size": "theory"}, out=tmp_path / "a", fresh=True)
    assert all(record.name == "gradwire" for record in caplog.records)


# ---- samples ----
def samples():
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 5)) * (random.random((60, 5)) < 0.6)
    return X, np.sign(X @ np.ones(5) + 0.1)


LOGISTIC = {"problem": {"kind": "logistic", "regularizer": "l2", "lambda": 0.1}, "clients": {"count": 3},
            "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 20}}


def test_samples_in_memory_have_the_bits_of_a_file(tmp_path):
    X, y = samples()
    with open(tmp_path / "data.svm", "w") as file:
        for row, label in zip(X, y):
            file.write(f"{label:g} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v) + "\n")
    of_file = gw.run(LOGISTIC, set={"problem.data": f"libsvm:{tmp_path}/data.svm"})
    of_memory = gw.run(LOGISTIC, data=(X, y), test=(X[:10], y[:10]))
    np.testing.assert_array_equal(of_file.model, of_memory.model)
    assert of_memory.metrics.accuracy[-1] > 0.5
    sparse = pytest.importorskip("scipy.sparse")
    of_rows = gw.run(LOGISTIC, data=(sparse.csr_matrix(X), y.astype(int)))
    np.testing.assert_array_equal(of_rows.model, of_memory.model)


@pytest.mark.parametrize("data, error", [
    ((np.ones(5), np.ones(5)), gw.DataError), ((np.ones((5, 2)), np.ones(4)), gw.DataError),
    ((np.array([[np.nan]]), np.ones(1)), gw.DataError), (np.ones(3), TypeError), (3, TypeError)])
def test_wrong_samples_are_refused(data, error):
    with pytest.raises(error):
        gw.run(LOGISTIC, data=data)


# ---- Ctrl-C ----
def seconds_until_interrupted(run):
    sent = []
    timer = threading.Timer(0.3, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run()
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_a_run_without_functions_of_python():
    handler = signal.getsignal(signal.SIGINT)
    assert seconds_until_interrupted(lambda: gw.run(SMALL, set={"run.rounds": 100_000_000, "run.evaluate_every": 0})) < 5
    assert signal.getsignal(signal.SIGINT) is handler
    assert gw.run(SMALL).outcome == "finished"


def test_ctrl_c_ends_a_run_with_functions_of_python(least_squares):
    def slow(x, out):  # a round takes 10 s
        time.sleep(0.25)
        out[:] = x
        return 0.0
    experiment = {"algorithm": {"name": "gd", "step_size": 1e-9}, "run": {"rounds": 1_000_000}}
    assert seconds_until_interrupted(lambda: run_functions([slow] * 40, experiment=experiment)) < 5
    quick = least_squares[2]
    assert seconds_until_interrupted(lambda: run_functions(quick, experiment=experiment)) < 5
    safe = [gw.oracle(f, 10, thread_safe=True) for f in quick]
    assert seconds_until_interrupted(lambda: gw.run(experiment, oracles=safe, threads=4)) < 5


def test_runs_in_other_threads_are_not_interrupted():
    results = []
    thread = threading.Thread(target=lambda: results.append(gw.run(SMALL)))
    thread.start()
    thread.join()
    assert results[0].outcome == "finished"


# ---- sweeps and figures ----
def test_sweep(tmp_path):
    sweep = gw.sweep(SMALL, {"algorithm.step_size": [0.01, "theory"], "seed": np.arange(1, 3)})
    assert len(sweep) == 4 and sweep.failed == []
    assert sweep.values[0] == {"algorithm.step_size": 0.01, "seed": 1}
    alone = gw.run(SMALL, set={"algorithm.step_size": 0.01, "seed": 2})
    same_numbers(sweep[1].metrics, alone.metrics)
    assert [r.rounds for r in sweep[1:3]] == [40, 40] and sweep[-1].rounds == 40
    table = sweep.table
    assert len(table["seed"]) == 4 * 41 and list(table)[:3] == ["seed", "algorithm.step_size", "round"]
    assert len(sweep.best().tuned) == 1 and "svg" in sweep._repr_html_()
    assert "step_size" in repr(sweep)
    kept = gw.sweep(SMALL, {"seed": [1]}, out=tmp_path / "sweep")
    assert gw.read(next((tmp_path / "sweep").rglob("metrics.csv")).parent).rounds == kept[0].rounds
    with pytest.raises(TypeError, match="list of values"):
        gw.sweep(SMALL, {"seed": 3})
    with pytest.raises(gw.ExperimentError):
        gw.sweep(SMALL, {"sead": [3]})


def test_plot(tmp_path):
    ef21, gd = gw.run(SMALL), gw.run(SMALL, set={"algorithm.name": "gd", "algorithm.compressor": "identity"})
    figure = gw.plot(ef21, gd, x="bits", labels=["one", "the other"])
    xml.etree.ElementTree.fromstring(figure._repr_svg_())
    assert "the other" in figure.svg
    figure.save(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").stat().st_size > 100
    ef21.save(tmp_path / "run")
    assert "<svg" in gw.plot(tmp_path / "run").svg and "svg" in ef21._repr_html_()
    with pytest.raises(gw.ExperimentError, match="column"):
        gw.plot(ef21, x="bitz")
    with pytest.raises(ValueError, match="labels"):
        gw.plot(ef21, labels=[])
