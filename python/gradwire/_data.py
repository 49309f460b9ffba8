"""Samples in arrays and texts."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._errors import DataError

if TYPE_CHECKING:
    from ._types import Samples

def source_of(samples: Samples | None) -> str:
    """The text of a source or path, as problem.data takes it, or "" if `samples` are something else."""
    if isinstance(samples, os.PathLike) or isinstance(samples, str) and "\n" not in samples:
        return os.fspath(samples)
    return ""


def _rows_of(features: Any) -> Any:
    """The features as rows of SciPy or as an array."""
    return features.tocsr() if hasattr(features, "tocsr") else np.asarray(features)


def check_columns(data: Samples | None, test: Samples | None) -> None:
    """Checks that samples for training and for the accuracy, if both are arrays, have the same features."""
    if isinstance(data, (tuple, list)) and isinstance(test, (tuple, list)) and len(data) == len(test) == 2:
        shape, other = _rows_of(data[0]).shape, _rows_of(test[0]).shape
        if len(shape) == len(other) == 2 and shape[1] != other[1]:
            raise DataError(f"test: the features have {other[1]} columns, those of data have {shape[1]}")


def data_of(samples: Samples | None, name: str = "data") -> _core.Data | None:
    """The samples of (features, labels), or of a text in the form of CSV or LIBSVM. Features are dense, shape
    (m, columns), or sparse rows as SciPy has them."""
    if samples is None or source_of(samples):
        return None
    if isinstance(samples, (str, bytes)):
        return _core.Data.text(samples, name)
    if not isinstance(samples, (tuple, list)) or len(samples) != 2:
        what = f"{len(samples)} things" if isinstance(samples, (tuple, list)) else type(samples).__name__
        raise TypeError(f"{name}: give (features, labels), a text with a line break, or a source, not {what}")
    features, labels = samples
    try:
        labels = np.ascontiguousarray(labels, dtype=np.float64).ravel()
    except ValueError as error:
        raise DataError(f"{name}: labels of arrays must be numbers: {error}; give texts a number each, or bring a CSV "
                        "file") from None
    rows = _rows_of(features)
    if rows.ndim == 2 and rows.shape[0] != len(labels):
        raise DataError(f"{name}: there are {rows.shape[0]} rows of features and {len(labels)} labels")
    if hasattr(features, "tocsr"):
        if not rows.has_canonical_format:
            rows = rows.copy()  # the matrix of the caller must not change
            rows.sum_duplicates()  # also sorts the columns of a row
        return _core.Data.sparse(rows.shape[1], np.asarray(rows.indptr, dtype=np.uint64),
                                 np.asarray(rows.indices, dtype=np.uint32), np.asarray(rows.data, dtype=np.float64),
                                 labels)
    features = np.ascontiguousarray(features, dtype=np.float64)
    if features.ndim != 2:
        raise DataError(f"{name}: the features have shape {features.shape}; they must have shape (samples, columns)")
    return _core.Data.dense(features.shape[1], features.ravel(), labels)
