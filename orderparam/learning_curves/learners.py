"""Kernel regression on the examples at hand: its modes, its leave-one-out residuals at any ridge, its errors at any size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sl
from jaxtyping import Float, Int

from orderparam.kernels.held_out import HeldOut, held_out
from orderparam.networks import parse

RIDGES = 111  # that are tried, from 1e-10 to 10 times the largest eigenvalue
MOST_ROWS = 2000  # beyond, the kernel is approximated
CENTRES = 800  # of that approximation
BLOCK = 10_240  # rows of the features that are made at a time
MOST_TESTED = 20_000  # held-out examples of a measured point

ROWS = 512  # larger matrices are padded to multiples of this

Kernel = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Exact:
    """Regression with a kernel matrix: f(x) = k_x^T (K + T)^-1 y, targets of mean zero."""

    kernel: Float[np.ndarray, "example example"]
    targets: Float[np.ndarray, "example output"]

    @cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = sl.eigh(self.kernel, check_finite=False)
        return np.maximum(values, 0.0), vectors

    @property
    def examples(self) -> int:
        return len(self.targets)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "mode"]:
        """Of K/M, in decreasing order."""
        return self._basis[0][::-1] / self.examples

    @property
    def power(self) -> Float[np.ndarray, "mode"]:
        """Of the targets on the eigenvectors; sums to their mean square."""
        return np.sum((self._basis[1].T @ self.targets) ** 2, axis=1)[::-1] / self.examples

    @property
    def ridges(self) -> Float[np.ndarray, "ridge"]:
        return max(self._basis[0][-1], 1e-300) * np.geomspace(1e-10, 10, RIDGES)

    def solve(self, ridge: float) -> Float[np.ndarray, "example output"]:
        """(K + T)^-1 y."""
        values, vectors = self._basis
        return vectors @ ((vectors.T @ self.targets) / (values + ridge)[:, None])

    def leave_one_out(self, ridge: float) -> Float[np.ndarray, "example output"]:
        """y minus the prediction without the example itself: [(K + T)^-1 y]_i / [(K + T)^-1]_ii."""
        values, vectors = self._basis
        return self.solve(ridge) / (vectors**2 @ (1 / (values + ridge)))[:, None]

    def leave_group_out(self, ridge: float, groups: Int[np.ndarray, "example"]) -> Float[np.ndarray, "example output"]:
        """The same without the whole group of the example: the blocks of (K + T)^-1 instead of its diagonal."""
        values, vectors = self._basis
        weights = 1 / (values + ridge)
        dual = self.solve(ridge)
        residuals = np.empty_like(dual)
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            part = vectors[rows]
            residuals[rows] = np.linalg.solve((part * weights) @ part.T, dual[rows])
        return residuals

    def log_evidence(self) -> float:
        """Of the targets for each example, at the best amplitude of the prior and the best ridge (type-II maximum likelihood)."""
        values, vectors = self._basis
        squares = (vectors.T @ self.targets) ** 2
        weights = 1 / (values[:, None] + self.ridges)
        amplitude = squares.T @ weights / self.examples
        return float(np.max(np.mean(np.log(weights), axis=0) - np.mean(np.log(amplitude), axis=0)) - 1 - np.log(2 * np.pi)) / 2

    def curve(self, ridge: float, order: Int[np.ndarray, "row"], sizes: Sequence[int]) -> HeldOut:
        return held_out(self.kernel, self.targets, ridge, order, sizes)


@dataclass(frozen=True)
class Approximate:
    """Regression on features Phi, K ~ Phi Phi^T: what is more than a matrix of all pairs can hold. Phi comes in the eigenbasis of
    Phi^T Phi, so that a ridge costs one product."""

    features: Float[np.ndarray, "example feature"]
    targets: Float[np.ndarray, "example output"]
    total: Float[np.ndarray, "feature"]  # eigenvalues of Phi^T Phi, in decreasing order

    @classmethod
    def of(
        cls, kernel: Kernel, inputs: Float[np.ndarray, "example input"], targets: np.ndarray, centres: int = CENTRES
    ) -> "Approximate":
        """Nyström features of `centres` random examples (Williams and Seeger 2001): k(x, centres) K^(-1/2), K the centres' own
        matrix, without its modes below rounding."""
        chosen = np.random.default_rng(0).choice(len(inputs), min(centres, len(inputs)), replace=False)
        values, modes = sl.eigh(kernel(inputs[chosen], None), check_finite=False)
        kept = values > 1e-12 * values[-1]
        whiten = modes[:, kept] / np.sqrt(values[kept])
        features = np.empty((len(inputs), int(kept.sum())))
        for start in range(0, len(inputs), BLOCK):
            block = slice(start, start + BLOCK)
            features[block] = kernel(inputs[block], inputs[chosen]) @ whiten
        total, vectors = sl.eigh(features.T @ features, check_finite=False)
        return cls(features @ vectors[:, ::-1], targets, np.maximum(total[::-1], 0.0))

    @property
    def examples(self) -> int:
        return len(self.targets)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "mode"]:
        return self.total / self.examples

    @property
    def power(self) -> Float[np.ndarray, "mode"]:
        inside = self.total > 1e-13 * self.total[0]
        along = np.sum((self.features.T @ self.targets) ** 2, axis=1)
        return np.where(inside, along / np.where(inside, self.total, 1.0), 0.0) / self.examples

    @property
    def ridges(self) -> Float[np.ndarray, "ridge"]:
        return self.total[0] * np.geomspace(1e-10, 10, RIDGES // 3)

    def leave_one_out(self, ridge: float) -> Float[np.ndarray, "example output"]:
        weights = 1 / (self.total + ridge)
        fitted = self.features @ (weights[:, None] * (self.features.T @ self.targets))
        return (self.targets - fitted) / (1 - self.features**2 @ weights)[:, None]

    def left_out_errors(self) -> Float[np.ndarray, "ridge"]:
        """Sum of the squared leave-one-out residuals at every ridge, in one pass over the features."""
        weights = 1 / (self.total[:, None] + self.ridges)
        pull = (weights[:, :, None] * (self.features.T @ self.targets)[:, None, :]).reshape(len(self.total), -1)
        errors = np.zeros(weights.shape[1])
        for start in range(0, self.examples, BLOCK):
            rows = slice(start, start + BLOCK)
            features, targets = self.features[rows], self.targets[rows]
            missed = targets[:, None, :] - (features @ pull).reshape(len(targets), -1, targets.shape[1])
            errors += np.sum((missed / (1 - features**2 @ weights)[:, :, None]) ** 2, axis=(0, 2))
        return errors

    def curve(self, ridge: float, order: Int[np.ndarray, "row"], sizes: Sequence[int]) -> HeldOut:
        width = self.features.shape[1]
        gram, pull, start = np.zeros((width, width)), np.zeros((width, self.targets.shape[1])), 0
        rows, residuals = [], []
        for size in sizes:
            new = order[start:size]
            gram += self.features[new].T @ self.features[new]
            pull += self.features[new].T @ self.targets[new]
            start = size
            weights = sl.solve(gram + ridge * np.eye(width), pull, assume_a="pos", check_finite=False)
            rows.append(order[size : size + MOST_TESTED])
            residuals.append(self.targets[rows[-1]] - self.features[rows[-1]] @ weights)
        return HeldOut(np.asarray(sizes), rows, residuals)


Learner = Exact | Approximate


def learner(arch: str, inputs: Float[np.ndarray, "example input"], targets: Float[np.ndarray, "example output"]) -> Learner:
    """With the kernel of an infinitely wide network; exact for up to 2000 examples."""
    kernel = kernel_of(arch)
    if len(inputs) <= MOST_ROWS:
        return Exact(np.array(kernel(inputs, None)), targets)
    return Approximate.of(kernel, inputs, targets)


def kernel_of(arch: str) -> Kernel:
    """K(x, x') of an architecture. Inputs are padded to sizes that many tables share, so that a program compiled for one serves
    the next: columns of zeros, with the scale of x.x'/input_dim restored, and rows that are cut off again."""
    network = parse(arch)

    def kernel(first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
        one, two = _padded(first), None if second is None else _padded(second)
        return np.asarray(network.nngp(one, two))[: len(first), : len(first if second is None else second)]

    return kernel


def _padded(inputs: Float[np.ndarray, "example input"]) -> Any:
    import jax.numpy as jnp

    rows, columns = inputs.shape
    wide = max(8, 1 << (columns - 1).bit_length())
    tall = max(64, 1 << (rows - 1).bit_length()) if rows <= ROWS else -(-rows // ROWS) * ROWS
    return jnp.pad(jnp.asarray(inputs) * np.sqrt(wide / columns), ((0, tall - rows), (0, wide - columns)))
