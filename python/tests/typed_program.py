"""A program with annotations. test_types.py runs it, and checks it by mypy --strict, which must refuse the lines marked so."""
from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import gradwire as gw
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import assert_type

Vector = NDArray[np.float64]
keys: gw.Keys = {"problem": {"kind": "quadratic", "dim": 12, "lambda": 0.1}, "clients": {"count": 3},
                 "algorithm": {"name": "ef21", "compressor": "topk:k=3", "step_size": 0.05}, "run": {"rounds": 5}}
changes: gw.DottedKeys = {"run.rounds": 4, "problem.lambda": 0.2}


class Mine(gw.Algorithm):
    def start(self, s: Any) -> tuple[None, Vector]:
        return None, np.zeros_like(s.x)

    def client(self, c: gw.ClientContext, x: Vector, state: None) -> tuple[gw.Payload, None]:
        return c.compress(c.gradient() + c.loss_and_gradient(x)[0]), None

    def server(self, s: gw.ServerContext, x: Vector, state: Vector) -> tuple[Vector, Vector]:
        g = s.sum(onto=state)
        return x - s.step_size * g, g

    def asks_all(self, t: int) -> bool:
        return t == 0


class Signs(gw.UserCompressor):
    def constants(self, dim: int) -> gw.CompressorConstants:
        return gw.CompressorConstants.of_contractive(alpha=1 / dim, zeta=dim)

    def compress(self, v: Vector, random: gw.RandomStream) -> Vector:
        sent: Vector = np.sign(v) * np.abs(v).mean()
        return sent


class Square(gw.Oracle):
    dim = 4

    def loss_and_gradient(self, x: Vector, batch: NDArray[np.uint32], out: Vector) -> float:
        out[:] = x
        return float(x @ x) / 2


def pair(x: Vector) -> tuple[float, Vector]:
    return float(x @ x) / 2, x


def into(x: Vector, out: Vector) -> float:
    out[:] = x
    return float(x @ x) / 2


def main(folder: pathlib.Path) -> None:
    result = gw.run(keys, set=changes, algorithm=Mine(), on_record=lambda row: row.round == 3, out=folder / "run")
    assert result.rounds == 3
    gw.run(keys, set=changes, compressor=Signs(), data=None)
    oracles = [Square(), gw.oracle(pair, 4), gw.oracle(into, 4)]
    gw.run({"algorithm": {"name": "gd", "step_size": 0.1}, "run": {"rounds": 3}}, oracles=oracles, x0=[1, 2, 3, 4])
    gw.run({"problem": {"kind": "least_squares"}, "algorithm": {"name": "gd"}}, data=([[1.0, 2.0], [3.0, 4.0]] * 2, np.ones(4)),
           set={"clients.count": np.int64(2), "run.rounds": 2})
    with gw.Server(keys, state=folder / "server") as server:
        server.stop()
    if TYPE_CHECKING:
        assert_type(result.metrics.loss, Vector)
        assert_type(result.metrics["loss"], Vector)
        assert_type(server.wait(), gw.Result)
        assert_type(gw.sweep(keys)[0], gw.Result)
        assert_type(gw.sweep(keys)[1:], list[gw.Result])
        assert_type(gw.Experiment(keys) | changes, gw.Experiment)
        assert_type(2 / gw.Tape().variable(1.0), gw.Var)
        assert_type(gw.Compressor("topk:k=1", dim=3)([1.0, 2.0, 3.0]).indices, NDArray[np.uint32])
        assert_type(gw.Client("localhost:1", oracle=Square()).start(), gw.Client)
        gw.run(3)  # type: ignore
        gw.run(keys, round=3)  # type: ignore
        gw.run(keys, oracles=[into])  # type: ignore
        gw.run(keys, algorithm="ef21")  # type: ignore
        gw.run(keys, compressor="topk:k=3")  # type: ignore
        gw.run(keys, data=3)  # type: ignore
        assert_type(server.result(), gw.Result)
        gw.oracle(lambda x, y, z, w: 0.0, 4)  # type: ignore
        gw.oracle(lambda x: "text", 4)  # type: ignore
        gw.Payload.sparse(dim=3)  # type: ignore
        gw.Tape().variable("1")  # type: ignore
        gw.method()  # type: ignore
        result.models  # type: ignore
        typo: gw.Keys = {"run": {"round": 3}}  # type: ignore
        kind: gw.DottedKeys = {"problem.kind": "quadratics"}  # type: ignore


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        main(pathlib.Path(folder))
