"""Samples in arrays."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import _core
from ._errors import DataError

if TYPE_CHECKING:
    from ._types import Samples


def data_of(samples: Samples | None, name: str = "data") -> _core.Data | None:
    """The samples of (features, labels). Features are dense, shape (m, columns), or sparse rows as SciPy has them."""
    if samples is None:
        return None
    if not isinstance(samples, (tuple, list)) or len(samples) != 2:
        raise TypeError(f"{name}: give (features, labels), not {type(samples).__name__}")
    features, labels = samples
    labels = np.ascontiguousarray(labels, dtype=np.float64).ravel()
    if hasattr(features, "tocsr"):
        rows = features.tocsr()
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
