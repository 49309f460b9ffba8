"""Runs that an exception or Ctrl-C ends: what was measured until then."""
import os
import pickle
import signal
import threading

import gradwire as gw
import numpy as np
import pytest
from conftest import GD, SMALL, run_functions
from test_algorithm import MyEF21


class Unusual(Exception):
    pass


def failure(*arguments, error=Unusual, **options):
    """The result that the exception of a run carries."""
    with pytest.raises(error) as raised:
        gw.run(*arguments, **options)
    return raised.value.result


def check_first_rows(result, whole, rows, same_model):
    assert result.outcome == "stopped" and len(result.metrics.loss) == rows
    for name in ("round", "loss", "bits_up", "grad_calls"):
        np.testing.assert_array_equal(result.metrics[name], whole.metrics[name][:rows])
    np.testing.assert_array_equal(result.model, same_model.model)
    assert result.rounds == same_model.rounds and result.experiment.n == whole.experiment.n


def failing(function, error, call):
    """The function, with an exception in this call."""
    calls = [0]

    def f(x, out):
        calls[0] += 1
        if calls[0] == call:
            raise error
        return function(x, out)
    return f


@pytest.mark.parametrize("error", [Unusual("5"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("threads", [1, 4])
def test_an_exception_of_a_function_has_the_result_until_then(threads, error, least_squares):
    functions, every = least_squares[2], {"run.evaluate_every": 2}  # round k has a gradient of its own if k is odd
    whole = run_functions(functions, set=every)
    for call, rows, rounds in ((12, 6, 11), (1, 0, 0)):
        last = failing(functions[3], error, call)
        oracles = [gw.oracle(f, 10, thread_safe=threads > 1) for f in (*functions[:3], last)]
        result = failure(GD, error=type(error), oracles=oracles, set=every, threads=threads)
        check_first_rows(result, whole, rows, run_functions(functions, set=every | {"run.rounds": rounds}))


@pytest.mark.parametrize("part, rows", [("start", 0), ("client", 8), ("server", 8)])
def test_an_exception_of_an_algorithm_has_the_result_until_then(part, rows):
    class Failing(MyEF21):
        pass

    def fail(self, c, *arguments):
        if part == "start" or c.round == 7:
            raise Unusual
        return getattr(MyEF21, part)(self, c, *arguments)
    setattr(Failing, part, fail)
    result = failure(SMALL, algorithm=Failing())
    if part == "start":
        assert len(result.model) == len(result.metrics.loss) == 0
    else:
        check_first_rows(result, gw.run(SMALL, algorithm=MyEF21()), rows,
                         gw.run(SMALL, algorithm=MyEF21(), set={"run.rounds": 7}))


def test_an_exception_of_on_record_has_the_row():
    def fail(record):
        if record.round == 3:
            raise Unusual
    result = failure(SMALL, on_record=fail)
    check_first_rows(result, gw.run(SMALL), 4, gw.run(SMALL, set={"run.rounds": 3}))


def test_a_run_that_fails_has_the_result_until_then():
    result = failure(SMALL, set={"faults.lost_replies": 0.75}, error=gw.RunError)
    assert 0 < len(result.metrics.loss) == result.rounds + 1


def test_the_result_of_a_run_with_a_folder_has_the_rows_of_earlier_processes(tmp_path):
    class Failing(MyEF21):
        at = 9

        def server(self, s, x, g):
            if s.round == Failing.at:
                raise Unusual
            return super().server(s, x, g)
    options = {"algorithm": Failing(), "out": tmp_path / "a", "checkpoint_seconds": 1e-9}
    assert len(failure(SMALL, **options).metrics.loss) == 10
    Failing.at = 20
    result = failure(SMALL, **options)
    np.testing.assert_array_equal(result.metrics["round"], np.arange(21))


def test_the_result_of_a_failure_can_be_saved_and_pickled(tmp_path):
    for first in (True, False):
        result = failure({"algorithm": {"name": "gd", "step_size": "theory" if first else 0.1}, "run": {"rounds": 5}},
                         oracles=[gw.oracle(failing(lambda x, out: out.fill(0) or 0.0, Unusual(), 1 if first else 4), 3)])
        result.save(tmp_path / str(first))
        for copy in (pickle.loads(pickle.dumps(result)), gw.read(tmp_path / str(first))):
            assert copy.outcome == "stopped" and copy.summary["rounds"] == result.rounds
            np.testing.assert_array_equal(copy.model, result.model)


# ---- Ctrl-C ----
def interrupt_after(seconds=0.2):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


ENDLESS = SMALL | {"algorithm": {"name": "fedavg", "local_steps": 2_000_000_000, "local_step_size": 1e-9}}


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("transport", ["memory", "encoded"])
def test_ctrl_c_gives_up_a_round_without_functions_of_python(transport, threads):
    interrupt_after()
    result = failure(ENDLESS, error=KeyboardInterrupt, transport=transport, threads=threads)
    start = gw.run(ENDLESS, set={"run.rounds": 0})
    np.testing.assert_array_equal(result.model, start.model)
    assert result.outcome == "stopped" and result.metrics.loss.tolist() == start.metrics.loss.tolist()


def test_ctrl_c_gives_up_a_round_on_the_virtual_clock():
    interrupt_after()
    result = failure(ENDLESS, set={"clients.latency": "linear"}, error=KeyboardInterrupt)
    assert result.rounds == 0 and len(result.metrics.loss) == 1


def test_ctrl_c_ends_the_estimate_of_constants():
    mlp = {"problem": {"kind": "mlp", "data": "synthetic", "samples": 6400, "dim": 200, "hidden": "[200]"},
           "clients": {"count": 64}, "algorithm": {"name": "gd"}}
    interrupt_after(0.4)
    assert len(failure(mlp, error=KeyboardInterrupt).metrics.loss) == 0


def test_a_run_with_a_folder_resumes_after_ctrl_c_in_a_function(tmp_path):
    class Interrupted(gw.Oracle):
        dim, samples, is_armed = 12, 1, False

        def __init__(self, i):
            self.a = np.arange(12.0) * (i + 1)

        def loss_and_gradient(self, x, batch, out):
            if Interrupted.is_armed and self.a[1] == 3:
                signal.raise_signal(signal.SIGINT)
            out[:] = x - self.a
            return out @ out / 2

    def arm(record):
        Interrupted.is_armed = record.round == 15
    oracles = [Interrupted(i) for i in range(5)]
    experiment = SMALL | {"problem": {"kind": "custom"}}
    whole = gw.run(experiment, oracles=oracles, set={"run.evaluate_every": 5})
    options = {"oracles": oracles, "out": tmp_path / "a", "checkpoint_seconds": 1e-9, "set": {"run.evaluate_every": 5}}
    stopped = failure(experiment, error=KeyboardInterrupt, on_record=arm, **options)
    assert stopped.rounds == 16 and stopped.metrics["round"].tolist() == [0, 5, 10, 15]
    Interrupted.is_armed = False
    resumed = gw.run(experiment, **options)
    np.testing.assert_array_equal(resumed.model, whole.model)
    for name in ("loss", "bits_up", "bytes_down", "grad_calls"):
        np.testing.assert_array_equal(resumed.metrics[name], whole.metrics[name])


def test_a_run_continues_if_the_handler_of_the_program_does_not_raise():
    came = []

    def handle(*_):
        came.append(1)
        if len(came) == 4:
            raise Unusual

    def send(record):
        if record.round in (5, 9):
            os.kill(os.getpid(), signal.SIGINT)
    earlier = signal.signal(signal.SIGINT, handle)
    try:
        assert gw.run(SMALL, on_record=send).outcome == "finished" and len(came) == 2
        interrupt_after(0.2)
        interrupt_after(0.4)
        assert failure(ENDLESS).outcome == "stopped" and len(came) == 4
    finally:
        signal.signal(signal.SIGINT, earlier)
