"""Kernel regression on the examples at hand: modes of the kernel, leave-one-out residuals at any
ridge, errors at any size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.linalg as sl
from jaxtyping import Float, Int

from orderparam.kernels.held_out import HeldOut, factorised, held_out
from orderparam.kernels.on_host import named as on_host

RIDGES = 111  # number of ridges that are tried, from 1e-10 to 10 times the largest eigenvalue
MOST_ROWS = 2000  # largest number of rows of an eigendecomposition
# rows of the largest Cholesky factor, and held-out rows tested with it
LARGEST, TESTED = 8000, 4000
BLOCK = 2048  # rows of a large kernel matrix that are computed at a time
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
        """Eigenvalues of K/M, in decreasing order."""
        return self._basis[0][::-1] / self.examples

    @property
    def power(self) -> Float[np.ndarray, "mode"]:
        """Power of the targets on each eigenvector; the sum is their mean square."""
        return np.sum((self._basis[1].T @ self.targets) ** 2, axis=1)[::-1] / self.examples

    @property
    def ridges(self) -> Float[np.ndarray, "ridge"]:
        return max(self._basis[0][-1], 1e-300) * np.geomspace(1e-10, 10, RIDGES)

    def solve(self, ridge: float) -> Float[np.ndarray, "example output"]:
        """The coefficients (K + T)^-1 y."""
        values, vectors = self._basis
        return vectors @ ((vectors.T @ self.targets) / (values + ridge)[:, None])

    def inverse(self, ridge: float) -> Float[np.ndarray, "example example"]:
        """The inverse (K + T)^-1."""
        values, vectors = self._basis
        return (vectors / (values + ridge)) @ vectors.T

    def leave_one_out(self, ridge: float) -> Float[np.ndarray, "example output"]:
        """The leave-one-out residuals: y minus the prediction without that example, [(K + T)^-1
        y]_i / [(K + T)^-1]_ii."""
        values, vectors = self._basis
        return self.solve(ridge) / (vectors**2 @ (1 / (values + ridge)))[:, None]

    def left_out_errors(self) -> Float[np.ndarray, "ridge"]:
        """The sum of the squared leave-one-out residuals at every ridge, in two matrix products."""
        values, vectors = self._basis
        weights = 1 / (values[:, None] + self.ridges)
        own = vectors**2 @ weights
        projected = vectors.T @ self.targets
        return np.sum(
            [
                np.sum((vectors @ (one[:, None] * weights) / own) ** 2, axis=0)
                for one in projected.T
            ],
            axis=0,
        )

    def leave_group_out(
        self, ridge: float, groups: Int[np.ndarray, "example"]
    ) -> Float[np.ndarray, "example output"]:
        """The residuals when the group of the example is left out, from the blocks of (K + T)^-1
        instead of its diagonal."""
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
        """The log evidence of the targets per example, at the best amplitude of the prior and the
        best ridge (type-II maximum likelihood)."""
        values, vectors = self._basis
        squares = (vectors.T @ self.targets) ** 2
        weights = 1 / (values[:, None] + self.ridges)
        amplitude = squares.T @ weights / self.examples
        return (
            float(
                np.max(np.mean(np.log(weights), axis=0) - np.mean(np.log(amplitude), axis=0))
                - 1
                - np.log(2 * np.pi)
            )
            / 2
        )

    def curve(self, ridge: float, order: Int[np.ndarray, "row"], sizes: Sequence[int]) -> HeldOut:
        return held_out(self.kernel, self.targets, ridge, order, sizes)


@dataclass(frozen=True)
class Large:
    """Kernel regression on more rows than an eigendecomposition can hold: modes and ridges come
    from 2000 random rows, errors from Cholesky factors of the exact kernel on up to 8000 rows,
    tested on 4000 others. The kernel is not approximated."""

    kernel: Kernel
    inputs: Float[np.ndarray, "example input"]
    targets: Float[np.ndarray, "example output"]
    rows: Int[np.ndarray, "row"]
    pool: Exact

    @classmethod
    def of(
        cls, kernel: Kernel, inputs: Float[np.ndarray, "example input"], targets: np.ndarray
    ) -> "Large":
        rows = np.sort(np.random.default_rng(0).choice(len(inputs), MOST_ROWS, replace=False))
        return cls(
            kernel,
            inputs,
            targets,
            rows,
            Exact(np.array(kernel(inputs[rows], None)), targets[rows]),
        )

    @property
    def examples(self) -> int:
        return len(self.targets)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "mode"]:
        return self.pool.eigenvalues

    @property
    def power(self) -> Float[np.ndarray, "mode"]:
        return self.pool.power

    @property
    def factorisable(self) -> bool:
        """True if all rows together have a Cholesky factor, so that each row can be left out."""
        return self.examples <= LARGEST

    def leave_one_out(self, ridge: float) -> Float[np.ndarray, "example output"]:
        """The leave-one-out residuals: y minus the prediction without that example, for up to 8000
        rows."""
        root, dual = self._inverse(ridge)
        return dual / np.einsum("ij,ij->j", root, root)[:, None]

    def leave_group_out(
        self, ridge: float, groups: Int[np.ndarray, "example"]
    ) -> Float[np.ndarray, "example output"]:
        """The residuals when the group of the example is left out, for up to 8000 rows."""
        root, dual = self._inverse(ridge)
        residuals = np.empty_like(dual)
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            residuals[rows] = np.linalg.solve(root[:, rows].T @ root[:, rows], dual[rows])
        return residuals

    def _inverse(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """R with R^T R = (K + T)^-1, and the product of that inverse with the targets."""
        everything = np.arange(self.examples)
        factor = factorised(self._matrix(everything, everything), ridge)
        dual = sl.cho_solve((factor, True), self.targets, check_finite=False)
        unit = np.eye(self.examples, order="F")
        return sl.solve_triangular(
            factor, unit, lower=True, overwrite_b=True, check_finite=False
        ), dual

    def curve(self, ridge: float, order: Int[np.ndarray, "row"], sizes: Sequence[int]) -> HeldOut:
        train, test = order[: max(sizes)], order[max(sizes) : max(sizes) + TESTED]
        factor = factorised(self._matrix(train, train), ridge)
        explained = sl.solve_triangular(factor, self.targets[train], lower=True, check_finite=False)
        beside = sl.solve_triangular(
            factor, self._matrix(train, test), lower=True, overwrite_b=True, check_finite=False
        )
        residuals = [
            np.concatenate(
                [
                    self.targets[train[size:]] - factor[size:, :size] @ explained[:size],
                    self.targets[test] - beside[:size].T @ explained[:size],
                ]
            )
            for size in sizes
        ]
        return HeldOut(
            np.asarray(sizes), [np.concatenate([train[size:], test]) for size in sizes], residuals
        )

    def _matrix(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The kernel between rows, made block by block."""
        out = np.empty((len(first), len(second)), order="F")
        for start in range(0, len(first), BLOCK):
            block = slice(start, start + BLOCK)
            out[block] = self.kernel(self.inputs[first[block]], self.inputs[second])
        return out


Learner = Exact | Large


def learner(
    arch: str,
    inputs: Float[np.ndarray, "example input"],
    targets: Float[np.ndarray, "example output"],
) -> Learner:
    """The learner with the kernel of an infinitely wide network, with all modes for up to 2000
    examples."""
    kernel = kernel_of(arch)
    if len(inputs) <= MOST_ROWS:
        return Exact(np.array(kernel(inputs, None)), targets)
    return Large.of(kernel, inputs, targets)


def kernel_of(arch: str) -> Kernel:
    """K(x, x') of an architecture. Inputs are padded to sizes that many tables share, so that a
    program compiled for one serves the next: columns of zeros, with the scale of x.x'/input_dim
    restored, and rows that are cut off again. The matrices of most tables are small, and those of
    `orderparam.kernels.on_host` need no program at all."""
    if not isinstance(arch, str):
        raise ValueError(f"arch = {arch!r}: must be the name of a network, such as 'fc:2:erf'")
    at_once = on_host(arch)

    def kernel(first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
        if at_once and max(len(first), 0 if second is None else len(second)) <= MOST_ROWS:
            return at_once(first, second)
        one = _padded(first)
        two = () if second is None else (_padded(second),)
        program = _program(arch, one.shape, *(other.shape for other in two))
        return np.asarray(program(one, *two))[
            : len(first), : len(first if second is None else second)
        ]

    return kernel


@cache
def _program(arch: str, *shapes: tuple[int, int]) -> Callable[..., Any]:
    """The compiled kernel between inputs of these shapes."""
    import jax

    from orderparam.core.stored_programs import stored_or_compiled
    from orderparam.networks import parse

    inputs = tuple(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes)
    return stored_or_compiled(parse(arch).nngp, inputs, ("nngp", arch))


def _padded(inputs: Float[np.ndarray, "example input"]) -> Float[np.ndarray, "row column"]:
    rows, columns = inputs.shape
    wide = max(8, 1 << (columns - 1).bit_length())
    tall = max(64, 1 << (rows - 1).bit_length()) if rows <= ROWS else -(-rows // ROWS) * ROWS
    return np.pad(inputs * np.sqrt(wide / columns), ((0, tall - rows), (0, wide - columns)))
