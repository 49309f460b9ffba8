"""gradwire.torch: oracles of modules. PyTorch has 0.6 GB, so these tests are slow ones."""
import gradwire as gw
import numpy as np
import pytest

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")


def module_of():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def oracle_of(device=None):
    import gradwire.torch
    torch.manual_seed(2)
    inputs = torch.randn(90, 6)
    targets = inputs[:, :3].argmax(dim=1)
    return gradwire.torch.oracle(module_of(), torch.nn.CrossEntropyLoss(), inputs[:60], targets[:60],
                                 test=(inputs[60:], targets[60:]), device=device)


def run(device=None, **options):
    import gradwire.torch
    return gw.run(FEDAVG, oracles=[oracle_of(device)], x0=gradwire.torch.flat(module_of()), **options)


FEDAVG = {"precision": "fp32", "algorithm": {"name": "fedavg", "local_steps": 3, "local_step_size": 0.5, "batch": 8},
          "run": {"rounds": 20}}


def test_the_device_of_the_module_is_the_default():
    by_default, named = (run(device) for device in (None, "cpu"))
    np.testing.assert_array_equal(by_default.model, named.model)
    assert by_default.metrics.loss[-1] < 0.7 * by_default.metrics.loss[0]
    assert by_default.metrics.accuracy[-1] > by_default.metrics.accuracy[0]


def test_flat_and_load_are_inverse():
    import gradwire.torch
    module, other = module_of(), torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    gradwire.torch.load(other, gradwire.torch.flat(module))
    for p, q in zip(module.parameters(), other.parameters()):
        assert torch.equal(p, q)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_nearly_the_numbers_of_the_processor():
    on_cpu, on_gpu = (run(device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(on_gpu.model, on_cpu.model, atol=1e-4)
    np.testing.assert_allclose(on_gpu.metrics.loss, on_cpu.metrics.loss, rtol=1e-4)


def test_a_module_with_buffers_is_refused():
    import gradwire.torch
    with pytest.raises(ValueError, match="has buffers"):
        gradwire.torch.oracle(torch.nn.BatchNorm1d(3), torch.nn.MSELoss(), torch.ones(4, 3), torch.ones(4, 3))


def test_a_run_of_another_precision_is_refused():
    with pytest.raises(TypeError, match="set precision = 'fp32'"):
        run(set={"precision": "fp64"})
