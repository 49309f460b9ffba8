"""Clients of real servers: they survive the server, and say what is wrong in one line on both sides."""
import os
import pathlib
import socket
import sqlite3
import subprocess
import threading
import time

import gradwire as gw
import numpy as np
import pytest

BIN = pathlib.Path(os.environ["GRADWIRE_BIN"])
CUSTOM = {"problem": {"kind": "custom", "dim": 10}, "clients": {"count": 4},
          "algorithm": {"name": "ef21", "compressor": "topk:k=2", "step_size": 0.1}, "run": {"rounds": 200},
          "evaluation.grad_norm": "every"}


def quadratic(x):
    return float((x - 1) @ (x - 1)) / 2, x - 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def rounds_of(state):
    try:
        return (state / "metrics.csv").read_text().count("\n") - 1
    except FileNotFoundError:
        return -1


def wait_for(what, seconds=60):
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "waited too long"
        time.sleep(0.005)


class ServerProgram:
    """The program gradwire-server, which a test may kill."""

    def __init__(self, folder, experiment):
        self.state, self.address = folder / "state", f"127.0.0.1:{free_port()}"
        (folder / "run.toml").write_text(gw.Experiment(experiment).toml())
        self.folder = folder
        self.start()

    def start(self):
        self.process = subprocess.Popen([BIN / "gradwire-server", "run.toml", "--state", self.state, "--listen", self.address],
                                        cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()


class ServerInProcess:
    """gw.Server, which a test may stop, and start again at the same address."""

    def __init__(self, folder, experiment):
        self.state, self.address, self.experiment = folder / "state", f"127.0.0.1:{free_port()}", experiment
        self.start()

    def start(self):
        self.server = gw.Server(self.experiment, state=self.state, listen=self.address)

    def kill(self):
        self.server.stop()
        self.server.stop()
        self.server.wait(60)


def train_through_restarts(tmp_path, server_of, experiment, oracles, restarts):
    """Returns the result of clients whose server ends some times during the run."""
    server = server_of(tmp_path, experiment)
    clients = [gw.Client(server.address, oracle=oracle, name=f"c{i}", part=i, parts=len(oracles)).start()
               for i, oracle in enumerate(oracles)]
    seen = []
    for k in range(1, restarts + 1):
        wait_for(lambda: rounds_of(server.state) > k * experiment["run.rounds"] // (restarts + 1))
        server.kill()
        seen.append(rounds_of(server.state))
        server.start()
    for client in clients:
        client.wait(120)
    if isinstance(server, ServerProgram):
        assert server.process.wait(60) == 0
    else:
        server.server.wait(60)
    assert max(seen) < experiment["run.rounds"], "the run was over before the server ended"
    return gw.read(server.state)


@pytest.mark.parametrize("server_of", [ServerProgram, ServerInProcess])
def test_clients_have_the_bits_of_an_undisturbed_run_after_their_server_was_killed(tmp_path, least_squares, server_of):
    def slow(f):
        def g(x, out):
            time.sleep(0.001)
            return f(x, out)
        return g
    experiment = gw.Experiment(CUSTOM)
    mine = train_through_restarts(tmp_path, server_of, experiment, [gw.oracle(slow(f), 10) for f in least_squares[2]], 2)
    alone = gw.run(experiment, oracles=[gw.oracle(f, 10) for f in least_squares[2]], transport="encoded")
    np.testing.assert_array_equal(mine.model, alone.model)
    for column in ("loss", "grad_norm_sq", "bits_up", "bits_down", "grad_calls", "replies"):
        np.testing.assert_array_equal(mine.metrics[column], alone.metrics[column], err_msg=column)


@pytest.mark.slow
@pytest.mark.parametrize("server_of", [ServerProgram, ServerInProcess])
def test_clients_with_pytorch_have_the_bits_of_an_undisturbed_run_after_their_server_was_killed(tmp_path, server_of):
    torch = pytest.importorskip("torch")
    import gradwire.torch
    torch.set_num_threads(1)

    def oracle(i):
        torch.manual_seed(i)
        return gradwire.torch.oracle(torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)),
                                     torch.nn.CrossEntropyLoss(), torch.randn(40, 20), torch.randint(0, 5, (40,)))
    oracles = [oracle(i) for i in range(4)]
    experiment = gw.Experiment(CUSTOM, {"problem.dim": oracles[0].dim, "precision": "fp32", "run.rounds": 600,
                                        "algorithm.compressor": "topk:k=5%"})
    mine = train_through_restarts(tmp_path, server_of, experiment, oracles, 2)
    alone = gw.run(experiment, oracles=[oracle(i) for i in range(4)])
    np.testing.assert_array_equal(mine.model, alone.model)
    np.testing.assert_array_equal(mine.metrics.loss, alone.metrics.loss)
    assert mine.metrics.loss[-1] < mine.metrics.loss[0]


# ---- clients and servers that do not fit ----
LOGISTIC = {"problem": {"kind": "logistic", "data": "libsvm:x.svm", "dim": 10}, "clients": {"count": 1},
            "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 10}}


def one_line(text):
    assert len(text.strip().splitlines()) == 1, text
    return text.strip()


def refusal(tmp_path, experiment, client_of):
    """Returns the line of a client that the server cannot use, and the line that the server logs about it."""
    lines = []
    with gw.Server(experiment, state=tmp_path / "state", set={"clients.count": 1}, log=lines.append) as server:
        wait_for(lambda: any("listening" in line for line in lines), 10)
        before = len(lines)
        line = client_of(server.address)
        wait_for(lambda: len(lines) > before, 10)
        with pytest.raises(TimeoutError):  # the server waits for another client
            server.wait(0.1)
        about = lines[before:]
    return one_line(line), one_line("\n".join(about))


def python_client(oracle):
    def start(address):
        with pytest.raises(gw.ExperimentError) as error:
            gw.Client(address, oracle=oracle, name="mine").start().wait(30)
        return str(error.value)
    return start


def test_a_client_of_another_dimension_gives_one_line_on_both_sides(tmp_path):
    line, about = refusal(tmp_path, CUSTOM, python_client(gw.oracle(lambda x: (0.0, x), 3)))
    assert "dim 3" in line and "problem.dim = 10" in line
    assert "mine" in about and "its own log says more" in about


def test_a_function_for_a_problem_of_the_library_gives_one_line_on_both_sides(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 2:1\n-1 1:-1\n")
    line, about = refusal(tmp_path, LOGISTIC, python_client(gw.oracle(lambda x: (0.0, x), 10)))
    assert "start a client with data" in line and "'mine'" in about and line in about


def test_the_program_at_a_server_of_functions_gives_one_line_on_both_sides(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 2:1\n-1 1:-1\n")

    def program(address):
        done = subprocess.run([BIN / "gradwire-client", "--server", address, "--id", "mine", "--data", "libsvm:x.svm", "--quiet"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2, done.stderr
        return done.stderr
    line, about = refusal(tmp_path, CUSTOM, program)
    assert "the problem 'custom' has no data" in line and "mine" in about and "its own log says why" in about


# ---- what a server learns about an exception ----
class Proxy:
    """Passes bytes between clients and a server, and keeps them."""

    def __init__(self, address):
        self.seen, self.lock = bytearray(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        host, _, port = address.rpartition(":")
        self.server = (host, int(port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.server)
            except OSError:
                return
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one, other):
        try:
            while data := one.recv(65536):
                with self.lock:
                    self.seen += data
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_the_text_of_an_exception_stays_with_the_client(tmp_path):
    secret = "patient-4711-has-x"

    class DataTrouble(Exception):
        pass

    def f(x):
        calls.append(1)
        if len(calls) > 5:
            raise DataTrouble(secret) from ValueError(secret)
        return quadratic(x)
    calls, lines = [], []
    with gw.Server(CUSTOM, state=tmp_path / "state", set={"clients.count": 1}, log=lines.append) as server:
        proxy = Proxy(server.address)
        client = gw.Client(proxy.address, oracle=gw.oracle(f, 10), name="mine", log=lines.append).start()
        with pytest.raises(DataTrouble, match=secret):
            client.wait(60)
        wait_for(lambda: any("mine" in line and "exception" in line for line in lines), 10)
    proxy.listener.close()
    assert len(proxy.seen) > 100 and b"mine" in proxy.seen, "the proxy saw nothing"
    assert secret.encode() not in bytes(proxy.seen)
    assert not any(secret in line for line in lines), lines
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) >= 3
    for path in files:
        assert secret.encode() not in path.read_bytes(), path
        if path.suffix in (".db", ".sqlite"):
            assert secret not in "\n".join(sqlite3.connect(path).iterdump()), path


# ---- stop() ----
AT_ONCE = 5  # seconds; gradwire.bench measures how long it takes


def seconds_to_stop(client):
    started = time.monotonic()
    client.stop()
    client.wait(30)
    return time.monotonic() - started


def test_a_client_that_waits_stops_at_once(tmp_path):
    with gw.Server(CUSTOM, state=tmp_path / "state") as server:
        clients = [gw.Client(server.address, oracle=gw.oracle(lambda x: (0.0, x), 10)).start() for _ in range(3)]
        time.sleep(0.3)
        assert max(seconds_to_stop(client) for client in clients) < AT_ONCE


def test_a_client_that_computes_stops_after_its_gradient(tmp_path):
    begun, calls = threading.Event(), []

    def f(x):
        calls.append(time.monotonic())
        if len(calls) > 2:
            begun.set()
            time.sleep(0.3)
        return quadratic(x)
    with gw.Server(CUSTOM, state=tmp_path / "state", set={"clients.count": 1}) as server:
        client = gw.Client(server.address, oracle=gw.oracle(f, 10)).start()
        assert begun.wait(30)
        assert seconds_to_stop(client) < 0.3 + AT_ONCE
        assert time.monotonic() - calls[-1] >= 0.3, "the gradient was waited for"


def test_a_client_that_backs_off_stops_at_once():
    lines = []
    client = gw.Client(f"127.0.0.1:{free_port()}", oracle=gw.oracle(lambda x: (0.0, x), 10), log=lines.append).start()
    wait_for(lambda: sum("trying again" in line for line in lines) >= 3)
    assert seconds_to_stop(client) < AT_ONCE


def test_a_client_that_connects_stops_at_once():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection, and says nothing
        client = gw.Client("127.0.0.1:%d" % silent.getsockname()[1], oracle=gw.oracle(lambda x: (0.0, x), 10)).start()
        with silent.accept()[0]:
            time.sleep(0.1)
            assert seconds_to_stop(client) < AT_ONCE


def test_a_client_may_be_stopped_before_it_starts_and_again():
    client = gw.Client("127.0.0.1:1", oracle=gw.oracle(lambda x: (0.0, x), 10))
    client.stop()
    client.start().wait(10)
    client.stop()
    client.wait(10)
