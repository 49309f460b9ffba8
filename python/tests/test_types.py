"""The annotations of the package, its stubs, and the types of keys."""
import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import gradwire as gw
import pytest
from conftest import GRADWIRE, ROOT
from gradwire import _core

HERE = pathlib.Path(__file__).parent


def mypy(module, *arguments, cache):
    """Runs a module of mypy in the repository, whose pyproject.toml has the options. Skips the test without mypy."""
    pytest.importorskip("mypy")
    package = os.path.dirname(os.path.dirname(gw.__file__))
    done = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": package, "PYTHONPATH": package, "MYPY_CACHE_DIR": str(cache)})
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_the_package_is_typed(cache):
    mypy("mypy", "-p", "gradwire", cache=cache)


@pytest.mark.parametrize("example", sorted((ROOT / "python/examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_typed(example, cache):
    """The functions of the examples have no annotations. mypy checks their bodies nevertheless."""
    mypy("mypy", "--allow-untyped-defs", "--allow-untyped-calls", example, cache=cache)


def test_a_program_with_annotations_is_typed_and_runs(cache):
    subprocess.run([sys.executable, HERE / "typed_program.py"], check=True)
    mypy("mypy", HERE / "typed_program.py", cache=cache)


def test_the_stubs_have_what_the_module_has(cache, tmp_path):
    allowed = (HERE / "stubtest_allowlist.txt").read_text()
    if importlib.util.find_spec("torch") is None:  # the module of the adapter cannot be imported
        allowed += "gradwire\\.torch\n"
    (tmp_path / "allowlist.txt").write_text(allowed)
    mypy("mypy.stubtest", "gradwire", "--mypy-config-file", "pyproject.toml", "--allowlist", tmp_path / "allowlist.txt",
         cache=cache)


def stub_functions():
    """(name, function of the stub, function of the module), also of classes."""
    for node in ast.parse((ROOT / "python/gradwire/_core.pyi").read_text()).body:
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef) and not function.decorator_list:
                owner = getattr(_core, node.name) if function is not node else _core
                yield f"{node.name}.{function.name}", function, getattr(owner, function.name)


@pytest.mark.parametrize("name, stub, function", stub_functions(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_stub_has_the_arguments_of_its_function(name, stub, function):
    """stubtest cannot see them: only the docstring that pybind11 writes has them."""
    signature = re.match(r"\w+\((.*)\) -> ", function.__doc__ or "")
    if not signature:  # with several signatures, or of Python's own object
        assert "Overloaded" in (function.__doc__ or "") or name.endswith("__init__"), function.__doc__
        return
    arguments = re.split(r", (?=\w+:|\*,|\*args)", signature[1]) if signature[1] else []
    names = [a.split(":")[0] for a in arguments if a != "*"]
    given = [a.arg for a in stub.args.args + stub.args.kwonlyargs] + ["*args"] * (stub.args.vararg is not None)
    assert len(names) == len(given)
    for mine, theirs in zip(given, names):
        assert theirs in (mine, "self") or re.match(r"arg\d", theirs)
    optional = sum("= " in a for a in arguments)
    assert optional == len(stub.args.defaults) + sum(d is not None for d in stub.args.kw_defaults)
    assert arguments.count("*") == bool(stub.args.kwonlyargs)


def test_the_types_of_keys_are_those_of_the_program():
    """If this fails, run tools/python_keys.py."""
    spec = importlib.util.spec_from_file_location("python_keys", ROOT / "tools/python_keys.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.FILE.read_text() == tool.content(_core.keys(), _core.parameters())
    printed = subprocess.run([GRADWIRE, "list", "keys"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (\S+)", printed, re.M)
    assert names == list(gw.keys()["name"])
    assert set(names) <= set(gw.DottedKeys.__annotations__)
    sections = {name: hint for name, hint in gw.Keys.__annotations__.items() if "." not in name}
    assert set(sections) == {name.split(".")[0] for name in names}


def test_metrics_name_their_columns():
    assert list(gw.Metrics.__annotations__) == _core.TrainResult.columns()
