"""Results of runs that continue, and of servers."""
import subprocess
import threading

import gradwire as gw
import numpy as np
import pytest
from conftest import GRADWIRE, SMALL, eventually

CUSTOM = {"problem": {"kind": "custom", "dim": 10}, "clients": {"count": 1},
          "algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 30}}


def growing(folder):
    try:
        return gw.read(folder)
    except gw.ExperimentError:
        return None


def test_a_folder_that_a_run_of_python_fills(tmp_path):
    seen = []

    def look(record):
        now = gw.read(tmp_path / "run")
        assert now.outcome == "running" and len(now.model) == 0 and now.summary == {}
        assert now.rounds == record.round and now.metrics.loss[-1] == record.loss
        seen.append(now)
    whole = gw.run(SMALL, out=tmp_path / "run", on_record=look)
    assert len(seen) == 41 and "<table>" in seen[20]._repr_html_() and "running after 20 rounds" in repr(seen[20])
    np.testing.assert_array_equal(seen[20].metrics.loss, whole.metrics.loss[:21])
    assert seen[20].resolved == whole.resolved
    assert gw.read(tmp_path / "run").outcome == "finished"


def test_a_folder_that_gradwire_run_fills(tmp_path):
    keys = {"run.rounds": 10**8, "run.evaluate_every": 1000}
    (tmp_path / "long.toml").write_text(gw.Experiment(SMALL, keys).toml())
    program = subprocess.Popen([GRADWIRE, "run", "long.toml", "--out", "results/long", "--quiet"], cwd=tmp_path,
                               stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "results/long"
    try:
        assert eventually(lambda: (now := growing(folder)) and len(now.metrics.loss) > 2)
        first = gw.read(folder)
        assert first.outcome == "running" and first.experiment["run.rounds"] == 10**8
        assert eventually(lambda: gw.read(folder).rounds > first.rounds)
    finally:
        program.terminate()
        program.communicate(timeout=60)
    stopped = gw.read(folder)
    assert stopped.outcome == "stopped" and len(stopped.model) == 12
    np.testing.assert_array_equal(stopped.metrics.loss[:len(first.metrics.loss)], first.metrics.loss)


def test_a_server_that_runs(tmp_path):
    at_round_10, goes_on = threading.Event(), threading.Event()

    def pause(record):
        if record.round == 10:
            at_round_10.set()
            goes_on.wait(60)
    with gw.Server(CUSTOM, state=tmp_path / "state", on_record=pause) as server:
        before = server.result()
        assert before.outcome == "running" and before.rounds == 0 and len(before.metrics.loss) == 0
        client = gw.Client(server.address, oracle=gw.oracle(lambda x: (0.5 * x @ x - x.sum(), x - 1), 10)).start()
        assert at_round_10.wait(60)
        for now in (server.result(), gw.read(tmp_path / "state")):
            assert now.outcome == "running" and now.rounds >= 9 and len(now.model) == 0
            assert now.experiment["problem.kind"] == "custom"
        goes_on.set()
        result = server.wait(60)
        client.wait(60)
        for now in (server.result(), gw.read(tmp_path / "state")):
            assert now.outcome == "finished"
            np.testing.assert_array_equal(now.model, result.model)
            np.testing.assert_array_equal(now.metrics.loss, result.metrics.loss)
    with gw.Server(CUSTOM, set={"run.rounds": 10**6}, state=tmp_path / "other") as server:
        client = gw.Client(server.address, oracle=gw.oracle(lambda x: (0.5 * x @ x - x.sum(), x - 1), 10)).start()
        assert eventually(lambda: server.result().rounds > 5)
        server.stop()
        assert server.wait(60).outcome == "stopped" == gw.read(tmp_path / "other").outcome
        client.stop()


def test_a_folder_without_results(tmp_path):
    with pytest.raises(gw.ExperimentError, match="no results here"):
        gw.read(tmp_path)
    with pytest.raises(gw.ExperimentError, match="no results here"):
        gw.read(tmp_path / "nowhere")
