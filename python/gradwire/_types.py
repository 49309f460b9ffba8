"""Types of arguments. Only annotations use them, so a program does not import this file."""
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._core import Payload
from ._experiment import Experiment
from ._keys import DottedKeys, Keys
from ._result import Record

Path = Union[str, "os.PathLike[str]"]
Changes = Union[DottedKeys, Keys, Mapping[str, object]]
Source = Union[Path, Keys, DottedKeys, Mapping[str, object], Experiment]

Vector = NDArray[Any]  # shape (d,), in the precision of the run: float64 or float32
Floats = NDArray[np.float64]
Batch = NDArray[np.uint32]
Reply = Union[Vector, Payload, tuple[Union[Vector, Payload], ...]]
Function = Union[Callable[[Vector], tuple[SupportsFloat, ArrayLike]], Callable[[Vector, Vector], SupportsFloat],
                 Callable[[Vector, Batch, Vector], SupportsFloat]]
OnRecord = Callable[[Record], object]
Log = Callable[[str], object]


class SparseRows(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any: ...


# (features, labels), the text of a CSV or LIBSVM file, or a source
Samples = Union[tuple[Union[ArrayLike, SparseRows], ArrayLike], str, bytes, "os.PathLike[str]"]
