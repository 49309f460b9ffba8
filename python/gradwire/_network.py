"""Clients and servers of runs over TCP or TLS, in this process."""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _core
from ._data import data_of, source_of
from ._experiment import Experiment
from ._oracle import Oracle
from ._result import Result
from ._run import log_function, on_row

if TYPE_CHECKING:
    from ._types import Changes, Log, OnRecord, Path, Samples, Source

_Made = TypeVar("_Made")
_Self = TypeVar("_Self", bound="_Process[Any]")
_alive: weakref.WeakSet[_Process[Any]] = weakref.WeakSet()


def _path(value: Path | None) -> str:
    return "" if value is None else os.fspath(value)


class _Process(Generic[_Made]):
    """A call that runs on a thread of its own. At the end of the program it is stopped."""

    def __init__(self) -> None:
        self._pid, self._over = os.getpid(), threading.Event()
        self._thread: threading.Thread | None = None
        self._native: Any = None  # of a Server
        self._error: BaseException | None = None

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"this {type(self).__name__} belongs to the process that made it; start it in the child, or "
                               "use the start method spawn")

    def _begin(self, call: Callable[[], _Made]) -> None:
        def work() -> None:
            try:
                self._made = call()
            except BaseException as error:
                self._error = error
            self._over.set()

        self._thread = threading.Thread(target=work, daemon=True, name=f"gradwire {type(self).__name__}")
        _alive.add(self)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> _Made:
        """Waits for the end. Raises what ended it otherwise, and TimeoutError after `timeout` seconds."""
        self._check_process()
        if self._thread is None:
            raise RuntimeError(f"this {type(self).__name__} was not started")
        if not self._over.wait(timeout):
            raise TimeoutError(f"the {type(self).__name__.lower()} has not ended in {timeout} s")
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.stop()  # a server then does not wait for its clients
        if self._thread is not None:
            self._over.wait()


@atexit.register
def _stop_all() -> None:
    mine = [each for each in _alive if each._pid == os.getpid()]
    for each in mine:
        each.stop()
        each.stop()
    for each in mine:
        each._over.wait()
        each._native = None  # waits for the thread of a server, which needs the interpreter


class Client(_Process[None]):
    """A client of a server: it joins the run, answers until the run is over, and reconnects after it loses the
    connection. A process may have several.

    server     HOST:PORT of the server, or of its relay
    oracle     the client's function; the server's experiment has problem.kind = "custom"
    data, test samples (features, labels), a text of these with a line break, or a source of gradwire-client
               ("libsvm:a9a#0/4")
    name       the client keeps its number under the same name
    part, parts  the number of this client, 0 .. parts - 1, and of all; by default the server numbers clients
    identity, token, ca, insecure, state   as the options of gradwire-client
    give_up_after   seconds without a server after which the client ends
    log        a function of a line
    """

    def __init__(self, server: str, *, oracle: Oracle | None = None, data: Samples | None = None,
                 test: Samples | None = None, name: str = "", part: int = 0, parts: int = 0, identity: Path | None = None,
                 token: str | None = None, ca: Path | None = None, insecure: bool = False, state: Path | None = None,
                 threads: int | None = None, give_up_after: float = 3600.0, log: Log | None = None) -> None:
        super().__init__()
        if (oracle is None) == (data is None):
            raise TypeError("a client needs oracle=, or data=")
        if oracle is not None and not isinstance(oracle, Oracle):
            raise TypeError(f"oracle: write gradwire.oracle(f, dim) for a function, not a {type(oracle).__name__}")
        self._stop = _core.Stop()
        self._arguments = (server, name, _path(identity), token or "", _path(ca), insecure, _path(state), source_of(data),
                           source_of(test), part, parts, threads or 0, give_up_after, oracle, data_of(data),
                           data_of(test, "test"), log_function(log), self._stop)

    def start(self) -> Client:
        """Starts the client on a thread of its own, and returns it."""
        self._check_process()
        if self._thread is None:
            self._begin(lambda: _core.run_client(*self._arguments))
        return self

    def stop(self) -> None:
        """Ends the client soon; any thread may call it. A gradient in progress is waited for."""
        self._check_process()
        self._stop.stop()

    def __enter__(self) -> Client:
        return self.start()


class Server(_Process[Result]):
    """A server in this process: it waits for the clients of an experiment, runs the rounds, and keeps the run in the
    folder `state`. A server with the same experiment and folder resumes the run, also after it was killed.

    listen     HOST:PORT; port 0 picks a free port, which `address` has
    identity   folder made by `gradwire-server init`; uses TLS
    insecure   allows plain text between machines
    metrics    HOST:PORT for Prometheus
    fresh      moves the run in the folder aside, and starts a new one
    on_record  called with a Record after each evaluation, on a thread of the server; True ends the run there
    log        a function of a line
    """

    def __init__(self, experiment: Source, *, state: Path, set: Changes = {}, listen: str = "127.0.0.1:0",
                 identity: Path | None = None, insecure: bool = False, metrics: str | None = None, fresh: bool = False,
                 on_record: OnRecord | None = None, log: Log | None = None) -> None:
        super().__init__()
        self._experiment = Experiment(experiment, set)
        self._native = _core.Server(self._experiment._native, _path(state), listen, _path(identity), insecure,
                                    metrics or "", fresh, on_row(on_record), log_function(log))
        self.address: str = self._native.address()  # HOST:PORT; empty if the run in the folder was over
        self._begin(lambda: Result(self._native.wait(), self._experiment))

    def result(self) -> Result:
        """Returns the rows so far, at once: the outcome is "running" and the model empty. After the end, the same as
        wait()."""
        self._check_process()
        return self.wait() if self._over.is_set() else Result(self._native.result(), self._experiment)

    def stop(self) -> None:
        """Ends the run after the round in progress; any thread may call it, and it returns at once. A second call does
        not wait for clients."""
        self._check_process()
        if self._native is not None:
            self._native.stop()
