"""What functions raise, and signals, reach the caller of a run or of a client."""
import os
import signal
import threading
import time
import traceback

import gradwire as gw
import numpy as np
import pytest
from conftest import SMALL

KEYS = {"algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 1000}}


class Unusual(Exception):
    """Has a state of its own, which a copy would lose."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.secret = object()


def failing_at_depth(raised, cause):
    """Raises it from a function in a function, as the traceback must show."""
    try:
        1 / 0
    except ZeroDivisionError as error:
        cause.append(error)
        raise raised


def assert_unchanged(caught, raised, cause):
    assert caught.value is raised
    assert type(raised) is type(caught.value) and caught.value.__context__ is cause[0]
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["fails", "failing_at_depth"], names
    assert len(set(names)) == len(names)


class Parts(gw.Algorithm):
    """Gradient descent, of which one part fails in round 3."""

    def __init__(self, part, fails):
        self.part, self.fails = part, fails

    def at(self, part, t=3):
        if part == self.part and t == 3:
            self.fails()

    def start(self, s):
        self.at("start")
        return None, None

    def client(self, c, x, state):
        self.at("client", c.round)
        return c.gradient(), None

    def server(self, s, x, state):
        self.at("server", s.round)
        return x - 0.1 * s.mean(), None

    def name(self):
        self.at("name")
        return "parts"

    def asks_all(self, t):
        self.at("asks_all", t)
        return False


class State:
    """A state whose pickling, or unpickling, fails."""

    def __init__(self, fails):
        self.fails = fails

    def __reduce__(self):
        self.fails()


@pytest.mark.parametrize("raised", [Unusual("text", 1), KeyboardInterrupt("text"), SystemExit(3), GeneratorExit(), MemoryError(),
                                    StopIteration(1), OSError(2, "text")],
                         ids=lambda raised: type(raised).__name__)
@pytest.mark.parametrize("source", ["function", "loss", "score", "on_record", "start", "client", "server", "asks_all", "name",
                                    "state"])
def test_an_exception_of_every_function_arrives_unchanged(source, raised):
    cause = []

    def fails(*_):
        failing_at_depth(raised, cause)

    class Mine(gw.Oracle):
        dim, calls = 3, 0

        def loss_and_gradient(self, x, batch, out):
            self.calls += 1
            if source == "function" and self.calls == 4:
                fails()
            out[:] = x
            return float(x @ x) / 2

    if source in ("loss", "score"):
        setattr(Mine, source, fails)
    algorithm = Parts(source, fails)
    if source == "state":
        algorithm.client = lambda c, x, state: (c.gradient(), State(fails))
    before = raised.__traceback__, raised.__context__
    raised.__traceback__, raised.__context__ = None, None
    with pytest.raises(type(raised)) as caught:
        gw.run(KEYS, oracles=[Mine() for _ in range(3)], algorithm=algorithm, x0=np.ones(3),
               set={"clients.participation": 0.5, "evaluation.grad_norm": "none" if source == "loss" else "every"},
               on_record=lambda record: fails() if source == "on_record" and record.round == 2 else None)
    assert_unchanged(caught, raised, cause)
    raised.__traceback__, raised.__context__ = before
    assert gw.run(SMALL).outcome == "finished"


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("kind", [Unusual, KeyboardInterrupt, SystemExit])
def test_exceptions_arrive_from_any_number_of_threads(threads, kind):
    raised = [kind(str(i)) for i in range(8)]
    causes = [[] for _ in raised]
    calls = [0] * 8
    together = threading.Barrier(threads)
    first = []

    def function(i):
        def fails(x, out):
            calls[i] += 1
            time.sleep(0.001)  # so that the work is worth several threads
            if calls[i] == 6:
                first.append(i)
                if len(first) <= threads:
                    together.wait(10)  # so that all threads raise in the same round
                failing_at_depth(raised[i], causes[i])
            out[:] = x
            return float(x @ x) / 2
        return fails
    with pytest.raises(kind) as caught:
        gw.run(KEYS, oracles=[gw.oracle(function(i), 3, thread_safe=threads > 1) for i in range(8)], threads=threads,
               x0=np.ones(3))
    i = int(str(caught.value))
    assert_unchanged(caught, raised[i], causes[i])
    others = {repr(raised[k]) for k in first if k != i}
    notes = getattr(caught.value, "__notes__", [])
    if hasattr(caught.value, "add_note"):  # from Python 3.11 on
        assert notes[0] == f"in the function of client {i}"
        assert {note.removeprefix("another thread raised ") for note in notes[1:]} <= others
        assert threads == 1 or len(notes) > 1
        assert len(notes) <= threads
    assert gw.run(SMALL).outcome == "finished"


def test_an_exception_that_a_function_catches_changes_nothing():
    class Catches(gw.Algorithm):
        def client(self, c, x, state):
            for wrong in (np.ones(2), np.ones(len(x), np.float32), "text", None):
                with pytest.raises((TypeError, ValueError)):
                    c.compress(wrong)
            with pytest.raises(RuntimeError):
                c.compress(x, 99)
            return c.gradient(), None

        def server(self, s, x, state):
            with pytest.raises(RuntimeError):
                s.mean(3)
            return x - 0.05 * s.mean(), None
    keys = {"algorithm.compressor": "identity"}
    np.testing.assert_array_equal(gw.run(SMALL, set=keys, algorithm=Catches()).model,
                                  gw.run(SMALL, set=keys | {"algorithm.name": "gd"}).model)


def test_a_function_may_raise_after_an_exception_of_the_function_it_asks():
    """The exception of the oracle is replaced by that of the client, as in any Python code."""
    def fails(x):
        raise Unusual("of the oracle")

    class Replaces(gw.Algorithm):
        def client(self, c, x, state):
            try:
                c.gradient()
            except Unusual as error:
                raise KeyError("of the client") from error
    with pytest.raises(KeyError, match="of the client") as caught:
        gw.run(KEYS, oracles=[gw.oracle(fails, 3)], algorithm=Replaces(),
               set={"evaluation.grad_norm": "none", "run.evaluate_every": 0})
    assert isinstance(caught.value.__cause__, Unusual)


# ---- signals ----
def handled(run):
    """Runs with a handler of SIGINT that does not raise. Returns the result, and how often the handler was called."""
    calls = []

    def handler(number, frame):
        calls.append(number)
    earlier = signal.signal(signal.SIGINT, handler)
    try:
        result = run()
        assert signal.getsignal(signal.SIGINT) is handler
        os.kill(os.getpid(), signal.SIGINT)  # the handler still works
        assert calls[-1:] == [signal.SIGINT]
        return result, len(calls) - 1
    finally:
        signal.signal(signal.SIGINT, earlier)


def interrupt_once(at):
    """Sends SIGINT to this process when `at` is called for the 20th time."""
    calls = [0]

    def count(*_):
        calls[0] += 1
        if calls[0] == 20:
            os.kill(os.getpid(), signal.SIGINT)
    return count


@pytest.mark.parametrize("threads", [1, 4])
def test_a_handler_that_does_not_raise_lets_a_run_continue(threads):
    count = interrupt_once(None)

    def f(x, out):
        count()
        out[:] = x
        return float(x @ x) / 2
    oracles = [gw.oracle(f, 3, thread_safe=threads > 1) for _ in range(4)]
    result, calls = handled(lambda: gw.run(KEYS, oracles=oracles, threads=threads, x0=np.ones(3)))
    assert (result.outcome, result.rounds, calls) == ("finished", 1000, 1)


def test_a_handler_that_does_not_raise_lets_a_run_of_the_library_continue():
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    result, calls = handled(lambda: gw.run(SMALL, set={"problem.dim": 2000, "run.rounds": 20000, "run.evaluate_every": 0}))
    timer.join()
    assert (result.outcome, result.rounds, calls) == ("finished", 20000, 1)


def test_a_handler_that_raises_ends_a_run_with_its_exception():
    class Alarm(Exception):
        pass

    def handler(number, frame):
        raise Alarm("now")
    earlier = signal.signal(signal.SIGALRM, handler), signal.signal(signal.SIGINT, handler)
    try:
        for number in (signal.SIGALRM, signal.SIGINT):
            count = [0]

            def f(x):
                count[0] += 1
                if count[0] == 50:
                    os.kill(os.getpid(), number)
                return float(x @ x) / 2, x
            with pytest.raises(Alarm, match="now"):
                gw.run(KEYS, oracles=[gw.oracle(f, 3)])
            assert signal.getsignal(number) is handler
    finally:
        signal.signal(signal.SIGALRM, earlier[0])
        signal.signal(signal.SIGINT, earlier[1])


def test_the_earlier_handler_is_restored_whatever_ends_the_run():
    def fails(x):
        raise Unusual
    for handler in (signal.default_int_handler, signal.SIG_IGN, signal.SIG_DFL, lambda number, frame: None):
        earlier = signal.signal(signal.SIGINT, handler)
        try:
            gw.run(SMALL)
            assert signal.getsignal(signal.SIGINT) == handler
            with pytest.raises(Unusual):
                gw.run(KEYS, oracles=[gw.oracle(fails, 3)])
            assert signal.getsignal(signal.SIGINT) == handler
        finally:
            signal.signal(signal.SIGINT, earlier)
    with pytest.raises(KeyboardInterrupt):  # of the system, not only of Python
        os.kill(os.getpid(), signal.SIGINT)


def test_a_handler_that_a_function_sets_stays():
    def handler(number, frame):
        pass

    def f(x):
        signal.signal(signal.SIGINT, handler)
        return float(x @ x) / 2, x
    earlier = signal.getsignal(signal.SIGINT)
    try:
        gw.run(KEYS, oracles=[gw.oracle(f, 3)], set={"run.rounds": 3})
        assert signal.getsignal(signal.SIGINT) is handler
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, earlier)


# ---- clients ----
@pytest.mark.parametrize("raised", [Unusual("text", 1), KeyboardInterrupt("text"), SystemExit(3), StopIteration(1)],
                         ids=lambda raised: type(raised).__name__)
def test_an_exception_of_a_client_arrives_at_each_wait(tmp_path, raised):
    cause = []

    def fails(x):
        failing_at_depth(raised, cause)
    raised.__traceback__ = raised.__context__ = None
    keys = {"problem": {"kind": "custom", "dim": 3}, "clients": {"count": 1}} | KEYS
    with gw.Server(keys, state=tmp_path / "state") as server:
        client = gw.Client(server.address, oracle=gw.oracle(fails, 3)).start()
        with pytest.raises(type(raised)) as caught:
            client.wait(60)
        assert_unchanged(caught, raised, cause)
        with pytest.raises(type(raised)):
            client.wait(60)
