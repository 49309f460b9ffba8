"""The examples of docs/python.md are those of python/examples, and run."""
import re
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = sorted((ROOT / "python/examples").glob("*.py"))
NEEDS = {"1": ["pandas"], "4": ["pandas"], "5": ["torch"]}


def test_the_page_has_every_example_as_it_stands():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S)
    assert len(EXAMPLES) == 9
    for example in EXAMPLES:
        assert example.read_text() in blocks, example.name


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    for package in NEEDS.get(example.stem, []):
        pytest.importorskip(package)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error::ResourceWarning:gradwire", example], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() or example.stem == "3"
