"""Gaussian mixtures out of scikit-learn, the same in every process."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flexmem.memory.protocol import MethodError
from flexmem.ports import FloatArray


def require_packages(method: str, *packages: str) -> None:
    """Refuse a method whose packages are not installed.

    Raises:
        MethodError: one is missing; the message has the extra that brings it.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise MethodError(f"{method} needs {', '.join(missing)}: pip install 'flexmem[clustering]'")


@contextmanager
def repeatable() -> Iterator[None]:
    """One thread for linear algebra, so that sums have one order, and no warnings: histories of equal texts or of few
    ones are no mistake of the user's.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fit_mixture(points: FloatArray, components: int, seed: int) -> Any:
    """A `sklearn.mixture.GaussianMixture` fitted to ``points``, shape (things, dimensions); to be called within
    `repeatable`.

    Raises:
        ValueError: the points are too much alike for so many components.
    """
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(n_components=components, random_state=seed).fit(points)
