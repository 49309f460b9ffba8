"""gw.Client and gw.Server."""
import os
import signal
import subprocess
import threading
import time

import gradwire as gw
import numpy as np
import pytest
from conftest import run_script

CUSTOM = {"problem": {"kind": "custom", "dim": 10}, "clients": {"count": 4},
          "algorithm": {"name": "ef21", "compressor": "topk:k=2", "step_size": 0.1}, "run": {"rounds": 60}}


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_clients_in_threads_have_the_bits_of_a_run(tmp_path, precision):
    random = np.random.default_rng(0)
    real = {"fp64": np.float64, "fp32": np.float32}[precision]
    A, b = random.normal(size=(4, 50, 10)).astype(real), random.normal(size=(4, 50)).astype(real)

    def function(i):
        def f(x, out):
            r = A[i] @ x - b[i]
            np.matmul(A[i].T, r / 50, out=out)
            return r @ r / 100
        return gw.oracle(f, 10)
    rows = []
    experiment = gw.Experiment(CUSTOM, {"precision": precision})
    with gw.Server(experiment, state=tmp_path / "state", on_record=lambda r: rows.append(r.round)) as server:
        clients = [gw.Client(server.address, oracle=function(i), name=f"c{i}", part=i, parts=4).start() for i in range(4)]
        result = server.wait(60)
        for client in clients:
            client.wait(60)
    alone = gw.run(experiment, oracles=[function(i) for i in range(4)])
    np.testing.assert_array_equal(result.model, alone.model)
    np.testing.assert_array_equal(result.metrics.loss, alone.metrics.loss)
    assert rows == list(range(61)) and result.outcome == "finished" and result.model.dtype == real
    np.testing.assert_array_equal(gw.read(tmp_path / "state").model, result.model)
    with gw.Server(experiment, state=tmp_path / "state") as again:  # the run is over
        assert again.address == ""
        np.testing.assert_array_equal(again.wait(60).model, result.model)


def test_clients_with_samples(tmp_path):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(40, 3)), np.sign(random.normal(size=40))
    experiment = {"problem": {"kind": "logistic", "regularizer": "l2", "lambda": 0.1, "data": "given"}, "clients": {"count": 2},
                  "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 10}}
    with gw.Server(experiment, state=tmp_path / "state") as server:
        clients = [gw.Client(server.address, data=(X[k::2], y[k::2]), part=k, parts=2).start() for k in range(2)]
        result = server.wait(60)
        [client.wait(60) for client in clients]
    assert result.outcome == "finished" and result.metrics.loss[-1] < result.metrics.loss[0]


def test_local_training_of_clients_has_the_bits_of_a_run(tmp_path):
    class Trains(gw.Oracle):
        dim = 2

        def __init__(self, a):
            self.a = np.array(a)

        def loss_and_gradient(self, x, batch, out):
            out[:] = x - self.a
            return out @ out / 2

        def train_locally(self, y, training):
            first = (y - self.a) @ (y - self.a) / 2
            y += np.random.default_rng(training.seed).uniform(size=2) * training.step_size * (self.a - y)
            return first
    points = [[1.0, 2.0], [-3.0, 0.5]]
    experiment = {"problem": {"kind": "custom", "dim": 2}, "clients": {"count": 2}, "run": {"rounds": 20},
                  "algorithm": {"name": "fedavg", "local_steps": 2, "local_step_size": 0.3}}
    with gw.Server(experiment, state=tmp_path / "state") as server:
        clients = [gw.Client(server.address, oracle=Trains(p), name=f"c{i}", part=i, parts=2).start()
                   for i, p in enumerate(points)]
        result = server.wait(60)
        [client.wait(60) for client in clients]
    np.testing.assert_array_equal(result.model, gw.run(experiment, oracles=[Trains(p) for p in points]).model)


def test_works_with_the_programs(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 2:1\n-1 1:-1\n1 2:2\n")
    experiment = {"problem": {"kind": "logistic", "data": "libsvm:x.svm", "dim": 2}, "clients": {"count": 2},
                  "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 10}}
    with gw.Server(experiment, state=tmp_path / "state") as server:
        program = subprocess.Popen([os.environ["GRADWIRE_BIN"] + "/gradwire-client", "--server", server.address, "--data",
                                    "libsvm:x.svm"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        mine = gw.Client(server.address, data=f"libsvm:{tmp_path}/x.svm").start()
        result = server.wait(60)
        mine.wait(60)
        assert program.wait(60) == 0, program.stderr.read()
        program.stderr.close()
    assert result.outcome == "finished" and result.rounds == 10


class Unusual(Exception):
    pass


def test_an_exception_of_a_client_arrives_at_its_wait(tmp_path):
    def f(x):
        raise Unusual("in the client")
    with gw.Server(CUSTOM, state=tmp_path / "state", set={"clients.count": 1}) as server:
        client = gw.Client(server.address, oracle=gw.oracle(f, 10)).start()
        with pytest.raises(Unusual) as error:
            client.wait(60)
    assert error.traceback[-1].name == "f"


def test_an_oracle_of_another_dimension_is_refused(tmp_path):
    with gw.Server(CUSTOM, state=tmp_path / "state", set={"clients.count": 1}) as server:
        with pytest.raises(gw.ExperimentError, match="problem.dim = 10"):
            gw.Client(server.address, oracle=gw.oracle(lambda x: (0.0, x), 3)).start().wait(60)


def test_any_thread_may_stop_clients_and_servers(tmp_path):
    with gw.Server(CUSTOM, state=tmp_path / "state") as server:
        client = gw.Client(server.address, oracle=gw.oracle(lambda x: (0.0, x), 10)).start()
        with pytest.raises(TimeoutError):
            client.wait(0.2)
        for each in (client, server):
            threading.Timer(0.1, each.stop).start()
            started = time.monotonic()
            each.wait(30)
            assert time.monotonic() - started < 10
        assert server.wait().outcome == "stopped"


def test_an_exception_of_on_record_reaches_the_waiter(tmp_path):
    def fail(record):
        raise Unusual("in on_record")
    with gw.Server(CUSTOM, state=tmp_path / "state", set={"clients.count": 1}, on_record=fail) as server:
        gw.Client(server.address, oracle=gw.oracle(lambda x: (0.0, x), 10)).start()
        with pytest.raises(Unusual):
            server.wait(60)


def test_wrong_options(tmp_path):
    with pytest.raises(gw.ExperimentError, match="--listen"):
        gw.Server(CUSTOM, state=tmp_path / "state", listen="nonsense")
    with pytest.raises(TypeError, match="oracle=, or data="):
        gw.Client("127.0.0.1:1")
    with pytest.raises(RuntimeError, match="was not started"):
        gw.Client("127.0.0.1:1", data="libsvm:x").wait()
    with pytest.raises(gw.ExperimentError):
        gw.Client("nonsense", oracle=gw.oracle(lambda x: (0.0, x), 10)).start().wait(30)


def test_a_program_that_ends_ends_its_clients_and_servers(tmp_path):
    run_script("""
import gradwire as gw
server = gw.Server({"problem": {"kind": "custom", "dim": 3}, "clients": {"count": 2},
                    "algorithm": {"name": "gd", "step_size": 0.1}, "run.rounds": 1}, state="state")
client = gw.Client(server.address, oracle=gw.oracle(lambda x: (0.0, x), 3)).start()
""", tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_fork_is_told_to_start_its_own(tmp_path):
    assert "start it in the child" in run_script("""
import os, gradwire as gw
server = gw.Server({"problem": {"kind": "custom", "dim": 3}, "clients": {"count": 2},
                    "algorithm": {"name": "gd", "step_size": 0.1}, "run.rounds": 1}, state="state")
import warnings; warnings.simplefilter("ignore")
pid = os.fork()
if pid == 0:
    try: server.stop()
    except RuntimeError as error: print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
server.stop()
""", tmp_path)


def test_ctrl_c_ends_the_wait_for_a_server(tmp_path):
    with gw.Server(CUSTOM, state=tmp_path / "state") as server:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            server.wait()


def test_a_client_without_a_server_fails():
    with pytest.raises(gw.RunError) as error:
        gw.Client("127.0.0.1:1", oracle=gw.oracle(lambda x: (0.0, x), 10), give_up_after=0.2).start().wait(30)
    assert isinstance(error.value, RuntimeError) and "\n" not in str(error.value)
