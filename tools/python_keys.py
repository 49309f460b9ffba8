#!/usr/bin/env python3
"""Writes python/gradwire/_keys.py, the types of the keys of experiments, from the lists of `gradwire list`.

    PYTHONPATH=build/release/python /usr/bin/python3 tools/python_keys.py

A test fails if the file is not what this prints: run it after a change of a key or of a parameter of an algorithm.
"""
import json
import keyword
import pathlib
import re
import textwrap

FILE = pathlib.Path(__file__).resolve().parents[1] / "python/gradwire/_keys.py"
HEAD = '''"""The keys of experiments, for editors and type checkers. tools/python_keys.py writes this file."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Union

import numpy as np

Integer = Union[int, "np.integer[Any]"]
Number = Union[float, "np.floating[Any]", Integer]
'''


def type_of(key, text):
    """The Python type of a text of `gradwire list keys`, such as '"full" or an integer, 1 to 4294967295'."""
    words = re.findall(r'"([^"]*)"', text.split(" or a size")[0] if not text.startswith("a size") else "")
    types = [f"Literal[{', '.join(map(json.dumps, words))}]"] if words else []
    for pattern, name in ((r"\ba list of .* integers", "Sequence[Integer]"), (r"\ban integer", "Integer"), (r"\ba number", "Number"),
                          (r"\ba (string|name|size)", "str"), (r"\btrue or false", "bool")):
        if re.search(pattern, text) and not (name == "Integer" and "Sequence[Integer]" in types):
            types.append(name)
    assert types, f"{key}: no Python type is known for {text!r}"
    types = ["str"] + [t for t in types if t != "str" and not t.startswith("Literal")] if "str" in types else types
    return types[0] if len(types) == 1 else f"Union[{', '.join(types)}]"


def sections(keys, parameters):
    """The keys of each section, "" for those without one: a dict of lists of (name, type, meaning)."""
    all = {}
    for key, type, default, meaning in zip(keys["name"], keys["type"], keys["default"], keys["meaning"]):
        section, _, name = key.rpartition(".")
        all.setdefault(section, []).append((name, type_of(key, type), f"{meaning} [{type}; {'' if default == 'required' else 'default: '}{default}]"))
    known = {name for name, _, _ in all["algorithm"]}
    users = {}
    for algorithm, name, meaning in zip(parameters["algorithm"], parameters["name"], parameters["meaning"]):
        if name not in known:
            users.setdefault(name, {}).setdefault(meaning, []).append(algorithm)
    for name, meanings in users.items():
        text = "; ".join(f"{', '.join(algorithms)}: {meaning}" for meaning, algorithms in meanings.items()) + "."  # a quote may not end it
        all["algorithm"].append((name, "Union[str, Number]", text))
    return all


def dict_of(name, members):
    return "\n".join([f'{name} = TypedDict("{name}", {{', *(f'    "{key}": {type},' for key, type in members), "}, total=False)"])


def class_of(name, doc, members):
    # A class cannot have a member whose name is a keyword, as lambda.
    keywords = [(key, type) for key, type, _ in members if keyword.iskeyword(key)]
    base = f"_{name}" if keywords else "TypedDict"
    lines = [dict_of(base, keywords), "", ""] if keywords else []
    lines += [f"class {name}({base}, total=False):", f'    """{doc}"""', ""]
    for key, type, meaning in members:
        if not keyword.iskeyword(key):
            lines.append(f"    {key}: {type}")
            lines += textwrap.wrap(f'"""{meaning}"""', 132, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def content(keys, parameters):
    """The text of the file for two tables of the module."""
    all = sections(keys, parameters)
    named = [section for section in all if section]
    parts = [class_of(section.title(), f"The section [{section}] of an experiment.", all[section]) for section in named]
    whole = all[""] + [(section, section.title(), f"the section [{section}]") for section in named]
    parts.append(class_of("Keys", "An experiment as a dict of sections.", whole))
    dotted = [(f"{section}.{name}".lstrip("."), type) for section in all for name, type, _ in all[section]]
    parts.append("# Keys with their sections, as in the argument `set`.\n" + dict_of("DottedKeys", dotted))
    return HEAD + "\n\n\n".join(parts) + "\n"


if __name__ == "__main__":
    from gradwire import _core
    FILE.write_text(content(_core.keys(), _core.parameters()))
