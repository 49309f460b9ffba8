"""Experiments: a file, the text of one, or a dict."""
from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import ExperimentError

if TYPE_CHECKING:
    from ._types import Changes, Source

_NUMBER = re.compile(r"[-+]?(\d[\d_]*)(\.\d+)?([eE][-+]?\d+)?$")


def text_of(key: str, value: Any) -> str:
    """The text of a value as an experiment file has it. Takes NumPy scalars and lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(json.dumps(x) if isinstance(x, str) else text_of(key, x) for x in value) + "]"
    raise TypeError(f"{key}: a value is a number, True or False, a text or a list of these, not {value!r}")


def value_of(text: str) -> Any:
    """The Python value of a text of the experiment file."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.match(text):
        return float(text) if re.search(r"[.eE]", text) else int(text)
    if text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def flat(keys: Changes, prefix: str = "") -> list[tuple[str, str]]:
    """The pairs (dotted key, text) of a dict of sections, or of dotted keys."""
    pairs: list[tuple[str, str]] = []
    for key, value in keys.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, text_of(prefix + key, value)))
    return pairs


class Experiment(Mapping[str, Any]):
    """A checked experiment: a mapping of every key, as "run.rounds", to its value. It does not change.

    `source` is a file or the name of a shipped experiment, the text of a file (it has a line break), a dict of
    sections or of dotted keys, or another experiment. `set` has keys that replace those of `source`.
    Raises ExperimentError with one line.
    """

    __slots__ = ("_native", "_file")
    _native: _core.Experiment
    _file: str

    def __init__(self, source: Source | _core.Experiment, set: Changes = {}) -> None:
        changes = flat(set)
        self._file = "experiment.toml"
        if isinstance(source, Experiment):
            self._native, self._file = source._native, source._file
        elif isinstance(source, _core.Experiment):
            self._native = source
        elif isinstance(source, Mapping):
            self._native, changes = _core.Experiment.from_keys(flat(source) + changes), []
        elif isinstance(source, str) and "\n" in source:
            self._native = _core.Experiment.parse(source, self._file)
        elif isinstance(source, (str, os.PathLike)):
            self._file = os.fspath(source)
            self._native = _core.Experiment.load(self._file)
        else:
            raise TypeError(f"an experiment is a file, a text, a dict or an Experiment, not {type(source).__name__}")
        if changes:
            self._native = self._native.with_keys(changes)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` if there is no such key."""
        try:
            return value_of(self._native.get(key))
        except IndexError:
            return default

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)  # never None if there is the key
        if value is None:
            known = list(self)
            near = [k for k in known if k.endswith("." + key)] or difflib.get_close_matches(key, known, 3)
            raise KeyError(f"no key {key!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        return value

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._native.settings())

    def __len__(self) -> int:
        return len(self._native.settings())

    def __or__(self, keys: Changes) -> Experiment:
        """A new experiment with these keys."""
        return Experiment(self, keys)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Experiment):
            return NotImplemented
        return self.toml() == other.toml()

    def __hash__(self) -> int:
        return hash(self.toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return _parse, (self.toml(), self._file)

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}: {self['algorithm.name']}, {self.n} clients)"

    def toml(self) -> str:
        """The text of a file with every key."""
        return self._native.toml()

    @property
    def n(self) -> int:
        """The number of clients."""
        return self._native.clients()

    @property
    def name(self) -> str:
        return self._native.name()

    @property
    def warnings(self) -> list[str]:
        return self._native.warnings()


def _parse(toml: str, file: str) -> Experiment:
    experiment = object.__new__(Experiment)
    experiment._native, experiment._file = _core.Experiment.parse(toml, file), file
    return experiment


def experiment_with(source: Source, set: Changes, required: dict[str, Any]) -> Experiment:
    """The experiment of `source` with the keys of `set`, and with the dotted keys of `required`: those that follow from the
    functions and samples of a program.

    A dict may lack the required keys, so they are merged before it is checked.
    """
    given = dict(flat(set))
    if isinstance(source, Mapping) and not isinstance(source, Experiment):
        given |= {key: text for key, text in flat(source) if key == "clients.count"}
    for key, value in required.items():
        if given.get(key, text_of(key, value)) != text_of(key, value):
            raise ExperimentError(f"{key} is {given[key]}, but what the program brings makes it {value}; leave the key out")
    if isinstance(source, Mapping) and not isinstance(source, Experiment):
        return Experiment(dict(flat(source)) | required, set)
    return Experiment(source, required | dict(flat(set)))
