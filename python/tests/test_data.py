"""Samples in texts, and sources."""
import gradwire as gw
import numpy as np
import pytest

LIBSVM = "1 1:0.5 2:1\n-1 1:-1\n1 2:2\n-1 2:-0.25\n1 1:3\n"
TABLE = "size,colour,kind,weight\n1.5,red,cat,2\n3,blue,dog,\n0.5,green,cat,4\n4,red,dog,1\n"
KEYS = {"problem": {"kind": "logistic", "regularizer": "l2", "lambda": 0.1, "normalize": "standard"}, "clients": {"count": 2},
        "algorithm": {"name": "gd", "step_size": 0.5}, "run": {"rounds": 10}}


def run(data, **options):
    return gw.run(KEYS, data=data, **options)


@pytest.mark.parametrize("source, text, keys", [
    ("libsvm", LIBSVM, {}), ("csv", TABLE, {"problem.label": "kind", "problem.missing": "mean"})])
def test_a_text_has_the_bits_of_the_same_file(tmp_path, source, text, keys):
    file = tmp_path / "samples"
    file.write_text(text)
    theirs = run(f"{source}:{file}", set=keys)
    assert theirs.experiment["problem.data"] == f"{source}:{file}"
    for given in (text, text.encode()):
        mine = run(given, set=keys)
        np.testing.assert_array_equal(mine.model, theirs.model)
        np.testing.assert_array_equal(mine.metrics.loss, theirs.metrics.loss)
        assert mine.experiment["problem.data"] == "given" and len(mine.warnings) == len(theirs.warnings)


def test_a_path_with_a_known_suffix_is_a_source(tmp_path):
    (tmp_path / "x.csv").write_text("1,2,1\n3,4,-1\n5,6,1\n")
    np.testing.assert_array_equal(run(tmp_path / "x.csv").model, run("1,2,1\n3,4,-1\n5,6,1\n").model)


def test_test_samples_may_be_a_text():
    result = run(TABLE, test="size,colour,kind,weight\n1,blue,dog,1\n2,red,cat,2\n",
                 set={"problem.label": "kind", "problem.missing": "mean"})
    assert result.metrics.accuracy[-1] in (0, 0.5, 1) and result.experiment["problem.test"] == "given"


@pytest.mark.parametrize("text, words", [
    ("1 1:0.5\n-1 1:x\n", "^data:2: the value 'x' is not a number"),
    ("size,weight,kind\n1,1,0\n,2,1\n2,2,0\n", "^data:3: column 1, 'size'"),
    ("1,2,1\n3,4\n", "^data:2: "),
    ("\n", "^data: holds no samples"),
])
def test_errors_name_the_line(text, words):
    with pytest.raises(gw.DataError, match=words):
        run(text)
    with pytest.raises(gw.DataError, match=words.replace("data", "test")):
        run(LIBSVM if " " in text or text == "\n" else "1,2,1\n3,4,-1\n", test=text, set={"problem.missing": "refuse"})


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="a text with a line break, or a source"):
        run(3.0)
    X, y = np.ones((6, 3)), np.array([1.0, -1] * 3)
    for data, error, words in (((X, y, y), TypeError, "not 3 things"), ((X, y[:4]), gw.DataError, "6 rows of features and 4 labels"),
                               ((X, ["a"] * 6), gw.DataError, "labels of arrays must be numbers")):
        with pytest.raises(error, match=words):
            run(data)
    with pytest.raises(gw.DataError, match="test: the features have 2 columns, those of data have 3"):
        run((X, y), test=(X[:, :2], y))
    given = run((X, y)).experiment
    with pytest.raises(gw.ExperimentError, match=r"problem.data is 'given': pass data=\(X, y\)"):
        gw.run(given)


def test_clients_with_texts(tmp_path):
    with gw.Server(KEYS, set={"problem.data": "given"}, state=tmp_path / "state") as server:
        lines = LIBSVM.splitlines(keepends=True)
        clients = [gw.Client(server.address, data=text, test=LIBSVM, part=k, parts=2).start()
                   for k, text in enumerate(("".join(lines[:2]), "".join(lines[2:]).encode()))]
        result = server.wait(60)
        [client.wait(60) for client in clients]
    assert result.outcome == "finished" and not np.isnan(result.metrics.accuracy[-1])
    with gw.Server(KEYS, set={"problem.data": "given", "clients.count": 1}, state=tmp_path / "other") as server:
        with pytest.raises(gw.DataError, match="data: has columns of text"):
            gw.Client(server.address, data="1,red,0\n2,blue,1\n3,red,0\n").start().wait(60)
