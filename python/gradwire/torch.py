"""Oracles of PyTorch modules."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch as _torch

from ._oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._types import Batch, Vector

    Loss = Callable[[Any, Any], _torch.Tensor]


class _ModuleOracle(Oracle):
    def __init__(self, module: _torch.nn.Module, loss: Loss, inputs: _torch.Tensor, targets: _torch.Tensor,
                 test: tuple[_torch.Tensor, _torch.Tensor] | None, device: _torch.device | str | None) -> None:
        buffers = [name for name, _ in module.named_buffers()]
        if buffers:
            raise ValueError(f"the module has buffers ({', '.join(buffers)}), as batch norm has: its loss would depend on "
                             "earlier calls; use a layer without buffers")
        if device is not None:
            module, inputs, targets = module.to(device), inputs.to(device), targets.to(device)
            test = test and (test[0].to(device), test[1].to(device))
        self._module, self._loss, self._inputs, self._targets, self._test = module, loss, inputs, targets, test
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        self.dim, self.samples = sum(p.numel() for p in self._parameters), len(inputs)
        self._type = self._parameters[0].dtype
        # Parameters and gradients become views of two flat tensors, so x and the gradient are copied once.
        self._device = self._parameters[0].device
        self._x, self._gradient = (_torch.zeros(self.dim, dtype=self._type, device=self._device) for _ in range(2))
        # NumPy reads the memory of the CPU alone, so numbers of another device pass through a tensor there.
        self._host = self._x if self._device.type == "cpu" else _torch.empty(self.dim, dtype=self._type)
        at = 0
        for p in self._parameters:
            x, gradient = (flat[at:at + p.numel()].view_as(p) for flat in (self._x, self._gradient))
            x.copy_(p.data)
            p.data, p.grad = x, gradient
            at += p.numel()

    def _move_to(self, x: Vector) -> None:
        if _torch.from_numpy(np.empty(0, x.dtype)).dtype != self._type:
            raise TypeError(f"the module has numbers of {self._type}, but the run has {x.dtype}; set precision = "
                            f"{'fp32' if self._type == _torch.float32 else 'fp64'!r}, or convert the module")
        self._host.numpy()[:] = x
        if self._host is not self._x:
            self._x.copy_(self._host)

    def loss_and_gradient(self, x: Vector, batch: Batch, out: Vector) -> float:
        self._move_to(x)
        inputs, targets = self._inputs, self._targets
        if len(batch):
            rows = _torch.from_numpy(batch.astype(np.int64)).to(self._device)
            inputs, targets = inputs[rows], targets[rows]
        self._gradient.zero_()
        value = self._loss(self._module(inputs), targets)
        value.backward()
        out[:] = self._gradient.cpu().numpy()
        return float(value)

    def score(self, x: Vector) -> tuple[int, int] | None:
        if self._test is None:
            return None
        self._move_to(x)
        with _torch.no_grad():
            right = self._module(self._test[0]).argmax(dim=1) == self._test[1]
        return int(right.sum()), len(right)


def oracle(module: _torch.nn.Module, loss: Loss, inputs: _torch.Tensor, targets: _torch.Tensor, *,
           test: tuple[_torch.Tensor, _torch.Tensor] | None = None, device: _torch.device | str | None = None) -> Oracle:
    """The oracle of a module: the mean of loss(module(inputs), targets). x is all its parameters, flattened in their order.
    `test` is (inputs, targets) of a classifier, for the accuracy. The module and the samples move to `device`; by default
    they stay where they are. Some operations of a GPU give other bits in each call; torch.use_deterministic_algorithms(True)
    refuses those.

    The run's precision must be that of the module: "fp32" for float32. Modules with dropout must be in eval mode.
    """
    return _ModuleOracle(module, loss, inputs, targets, test, device)


def flat(module: _torch.nn.Module) -> Vector:
    """The parameters of a module as one vector, shape (dim,), for x0: by default a run starts at 0, where hidden layers have
    no gradient."""
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in module.parameters() if p.requires_grad])


def load(module: _torch.nn.Module, x: Vector) -> None:
    """Writes x, the model of a Result, to the parameters of a module."""
    at = 0
    for p in (p for p in module.parameters() if p.requires_grad):
        p.data.copy_(_torch.from_numpy(np.array(x[at:at + p.numel()])).view_as(p))
        at += p.numel()
