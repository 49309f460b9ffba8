"""Compressors written in Python."""
import re
import threading

import gradwire as gw
import numpy as np
import pytest
from conftest import ROOT, SMALL, run_functions


class RandK(gw.UserCompressor):
    def __init__(self, k, scaled=True):
        self.k, self.scaled = k, scaled

    def name(self):
        return f"randk of Python k={self.k}"

    def constants(self, dim):
        if self.scaled:
            return gw.CompressorConstants.of_unbiased(dim / self.k - 1, self.k)
        return gw.CompressorConstants.of_contractive(self.k / dim, self.k)

    def drawn_indices(self, dim, random):
        drawn = set()
        while len(drawn) < self.k:
            drawn.add(random.below(dim))
        return sorted(drawn)

    def compress(self, v, random):
        indices = RandK.drawn_indices(self, len(v), random)
        real = v.dtype.type
        return gw.Payload.sparse(len(v), indices, v[indices] * (real(len(v)) / real(self.k) if self.scaled else real(1)))


class TopK(gw.UserCompressor):
    def __init__(self, k):
        self.k = k

    def constants(self, dim):
        return gw.CompressorConstants.of_contractive(self.k / dim, self.k)

    def compress(self, v, random):
        indices = np.sort(np.argsort(-np.abs(v), kind="stable")[:self.k])
        return gw.Payload.sparse(len(v), indices, v[indices])


def assert_equal_runs(mine, theirs, *, bytes_too=True):
    np.testing.assert_array_equal(mine.model, theirs.model)
    for column in ("loss", "grad_norm_sq", "bits_up", "bits_up_paper", "grad_calls") + (("bytes_up",) if bytes_too else ()):
        np.testing.assert_array_equal(mine.metrics[column], theirs.metrics[column])


@pytest.mark.parametrize("transport", ["memory", "encoded"])
@pytest.mark.parametrize("algorithm", ["dcgd", "diana", "marina"])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_randk_has_the_bits_of_the_one_of_the_library(precision, algorithm, transport):
    keys = {"precision": precision, "algorithm.name": algorithm, "algorithm.step_size": "theory", "run.rounds": 20}
    theirs = gw.run(SMALL, set=keys | {"algorithm.compressor": "randk:k=3"})
    mine = gw.run(SMALL, set=keys, compressor=RandK(3), transport=transport)
    assert_equal_runs(mine, theirs)
    assert mine.resolved["algorithm.step_size"] == theirs.resolved["algorithm.step_size"]
    assert mine.experiment["algorithm.compressor"] == "custom:randk of Python k=3"


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_ef21_with_topk_has_the_bits_of_the_library(precision):
    keys = {"precision": precision}
    assert_equal_runs(gw.run(SMALL, set=keys, compressor=TopK(3)), gw.run(SMALL, set=keys))


def test_algorithms_and_functions_of_python_use_it(least_squares):
    class Dcgd(gw.Algorithm):
        def client(self, c, x, state):
            return c.compress(c.gradient()), None

        def server(self, s, x, state):
            return x - s.step_size * s.mean(), None
    experiment = {"algorithm": {"name": "dcgd", "compressor": "randk:k=3", "step_size": 0.01}, "run": {"rounds": 30}}
    theirs = run_functions(least_squares[2], experiment=experiment)
    mine = run_functions(least_squares[2], experiment=experiment, compressor=RandK(3), algorithm=Dcgd())
    assert_equal_runs(mine, theirs)


def test_indices_that_are_not_drawn_again_cost_bits():
    class Sends(RandK):
        drawn_indices = None

        def compress(self, v, random):
            return super().compress(v, random)
    keys = {"algorithm.name": "dcgd", "run.rounds": 5}
    drawn, sent = (gw.run(SMALL, set=keys, compressor=compressor(3)) for compressor in (RandK, Sends))
    np.testing.assert_array_equal(drawn.model, sent.model)
    assert sent.metrics.bits_up[-1] > drawn.metrics.bits_up[-1] == 5 * 3 * 64


def test_a_vector_is_sent_whole():
    class Rounds(gw.UserCompressor):
        def constants(self, dim):
            return gw.CompressorConstants.of_contractive(0.5, dim)

        def compress(self, v, random):
            return np.round(v, 3)[::-1][::-1]
    result = gw.run(SMALL, set={"run.rounds": 5}, compressor=Rounds())
    assert result.metrics.bits_up[-1] == 5 * 12 * 64


def test_generators_of_numpy_depend_on_the_stream_alone():
    class Draws(RandK):
        drawn_indices = None

        def compress(self, v, random):
            indices = np.sort(random.generator().choice(len(v), self.k, replace=False))
            return gw.Payload.sparse(len(v), indices, v[indices] * (len(v) / self.k))
    keys = {"algorithm.name": "dcgd"}
    first, second = (gw.run(SMALL, set=keys, compressor=Draws(3), transport=t) for t in ("memory", "encoded"))
    np.testing.assert_array_equal(first.model, second.model)
    assert not np.array_equal(first.model, gw.run(SMALL, set=keys | {"seed": 2}, compressor=Draws(3)).model)


def test_threads_call_it_only_if_it_is_safe():
    class Watched(RandK):
        def compress(self, v, random):
            threads.add(threading.get_ident())
            return super().compress(v, random)
    keys = {"algorithm.name": "dcgd", "clients.count": 40, "problem.dim": 500}
    threads, watched = set(), Watched(50)
    alone = gw.run(SMALL, set=keys, compressor=watched, threads=4)
    assert threads == {threading.get_ident()}
    watched.thread_safe = True
    assert_equal_runs(gw.run(SMALL, set=keys, compressor=watched, threads=4), alone)
    assert len(threads) > 1


class Unusual(Exception):
    pass


def fail(*_):
    raise Unusual("in the compressor")


@pytest.mark.parametrize("thread_safe", [False, True])
@pytest.mark.parametrize("method", ["name", "constants", "compress", "drawn_indices"])
def test_exceptions_arrive_unchanged(method, thread_safe):
    compressor = RandK(3)
    compressor.thread_safe = thread_safe
    setattr(compressor, method, fail)
    with pytest.raises(Unusual) as error:
        gw.run(SMALL, set={"algorithm.name": "dcgd"}, compressor=compressor, threads=4)
    assert error.traceback[-1].name == "fail"


@pytest.mark.parametrize("method, value, error, words", [
    ("constants", 0.5, TypeError, "gradwire.CompressorConstants"),
    ("constants", gw.CompressorConstants.of_unbiased(-1, 3), Exception, "invalid constants"),
    ("compress", np.zeros(11), ValueError, r"what compress\(\) returned has shape \(11,\)"),
    ("compress", np.zeros(12, np.float32), TypeError, "float32"),
    ("compress", gw.Payload.sparse(12, [1], np.ones(1, np.float32)), TypeError, "other precision"),
    ("compress", gw.Payload.sparse(13, [1], [1.0]), Exception, "a vector of length 13, not 12"),
    ("compress", gw.Payload.sparse(12, [1], [1.0]), Exception, "differ from the indices"),
    ("drawn_indices", ["a"], ValueError, "invalid literal"),
])
def test_wrong_results_are_refused(method, value, error, words):
    compressor = RandK(3)
    setattr(compressor, method, lambda *_: value)
    with pytest.raises(error, match=words):
        gw.run(SMALL, set={"algorithm.name": "dcgd"}, compressor=compressor)


def test_is_checked_as_those_of_the_library():
    with pytest.raises(gw.ExperimentError, match="ef21 needs a contractive compressor"):
        gw.run(SMALL, compressor=RandK(3))
    with pytest.raises(TypeError, match="key algorithm.compressor"):
        gw.run(SMALL, compressor="topk:k=3")
    with pytest.raises(NotImplementedError, match="constants"):
        gw.run(SMALL, compressor=gw.UserCompressor())


def test_the_example_of_the_page_converges(monkeypatch):
    monkeypatch.chdir(ROOT)
    text, = re.findall(r"```python\n([^`]*UserCompressor[^`]*)```", (ROOT / "docs/python.md").read_text())
    names = {}
    exec(text, names)
    gradients = names["result"].metrics.grad_norm_sq
    assert gradients[-1] < 0.1 * gradients[0]
