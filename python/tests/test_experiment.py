"""gw.Experiment, the lists, and the errors of both."""
import pickle

import gradwire as gw
import numpy as np
import pytest
from conftest import ROOT, SMALL

QUADRATICS = ROOT / "experiments/configs/quadratics.toml"


def test_every_source_gives_the_same_experiment():
    of_dict = gw.Experiment(SMALL)
    dotted = gw.Experiment({"problem.kind": "quadratic", "problem.dim": np.int64(12), "problem.heterogeneity": np.float64(0.7),
                            "clients.count": 5, "algorithm": {"name": "ef21", "compressor": "topk:k=3", "step_size": 0.05},
                            "run.rounds": np.uint8(40), "run.x0": "normal"})
    text = gw.Experiment(of_dict.toml())
    assert of_dict == dotted == text
    assert hash(of_dict) == hash(text)
    assert gw.Experiment(of_dict) == of_dict
    assert gw.Experiment(QUADRATICS).name == "quadratics" == gw.Experiment(str(QUADRATICS)).name


def test_is_a_mapping_of_values():
    experiment = gw.Experiment(SMALL)
    assert experiment["run.rounds"] == 40 and isinstance(experiment["run.rounds"], int)
    assert experiment["algorithm.step_size"] == 0.05
    assert experiment["run.monitor"] is False
    assert experiment["algorithm.name"] == "ef21"
    assert experiment.n == 5
    assert "problem.dim" in experiment and "problem.dimm" not in experiment
    assert dict(experiment)["problem.dim"] == 12 and len(experiment) == len(list(experiment))
    with pytest.raises(KeyError, match="run.rounds"):
        experiment["run.round"]


def test_changes_make_a_new_experiment():
    experiment = gw.Experiment(SMALL, {"rounds": 7})
    other = experiment | {"run.rounds": 5, "algorithm": {"step_size": "theory"}}
    assert (experiment["run.rounds"], other["run.rounds"]) == (7, 5)
    assert other["algorithm.step_size"] == "theory"
    assert (experiment | {"evaluation.grad_norm": "none"})["evaluation.grad_norm"] == "none"


def test_pickles():
    for source in (SMALL, QUADRATICS):
        experiment = gw.Experiment(source)
        assert pickle.loads(pickle.dumps(experiment)) == experiment


@pytest.mark.parametrize("source, words", [
    (SMALL | {"problem": {"kind": "logstic"}}, "problem.kind: unknown .*logistic"),
    ({"algorithm.name": "ef2", "problem.kind": "quadratic", "problem.dim": 3}, "algorithm.name: .*did you mean 'ef21'"),
    ("nonexistent.toml", "nonexistent.toml"),
    ("[problem]\nkind = 3\n", ":2: "),
    (SMALL | {"run": {"rounds": 1.5}}, "run.rounds"),
])
def test_errors_are_lines_of_the_program(source, words):
    with pytest.raises(gw.ExperimentError, match=words) as error:
        gw.Experiment(source)
    assert isinstance(error.value, ValueError) and "\n" not in str(error.value)


@pytest.mark.parametrize("source", [3, None, SMALL | {"run": {"rounds": None}}, SMALL | {"run": {"rounds": {1, 2}}}])
def test_other_types_are_type_errors(source):
    with pytest.raises(TypeError):
        gw.Experiment(source)


def test_lists():
    algorithms, compressors, keys = gw.algorithms(), gw.compressors(), gw.keys()
    assert len(algorithms.name) == 43 and "ef21" in algorithms.name
    assert "topk" in compressors.name
    assert "run.rounds" in keys["name"]
    assert "ef21" in repr(algorithms) and "<td>ef21</td>" in algorithms._repr_html_()
    with pytest.raises(AttributeError, match="no column 'names'"):
        algorithms.names
