"""Correlations of the critical Ising model on a torus, by conformal invariance."""

from typing import Any

import numpy as np
from jaxtyping import Complex, Float

_TERMS = 12  # of the series of a theta function


def torus_correlator(
    z: Complex[np.ndarray, "*batch"], aspect: float = 1.0
) -> Float[np.ndarray, "*batch"]:
    r"""The correlation of two spins of the critical Ising model at the distance z = x + iy on a
    torus of length 1 and width `aspect`. Its unit is such that the correlation is $|z|^{-1/4}$ at
    small z:

    $$ \left| \frac{\theta_1'(0)}{\theta_1(z)} \right|^{1/4}
       \frac{\sum_{k=1}^4 |\theta_k(z/2)|}{\sum_{k=2}^4 |\theta_k(0)|} $$

    with Jacobi's theta functions at the nome $e^{-\pi\, aspect}$.

    Source: Di Francesco, Saleur, Zuber (1987).
    """
    nome = np.exp(-np.pi * aspect)
    orders = np.arange(_TERMS)
    slope = 2 * np.pi * np.sum((-1.0) ** orders * (2 * orders + 1) * nome ** ((orders + 0.5) ** 2))
    # the ratio of the partition sums with and without the two spins
    shape = np.sum(np.abs(_theta(z / 2, nome)), axis=0) / np.sum(np.abs(_theta(0j, nome)[1:]))
    return np.abs(slope / _theta(z, nome)[0]) ** 0.25 * shape


def _theta(u: Any, nome: float) -> list[np.ndarray]:
    """Jacobi's theta functions theta_1 .. theta_4 at the argument pi u."""
    n = np.arange(_TERMS)
    odd, even = nome ** ((n + 0.5) ** 2), nome ** (n**2) * np.where(n == 0, 0.5, 1.0)
    angle, signs = np.pi * np.asarray(u)[..., None], (-1.0) ** n
    return [
        2 * np.sum(weight * term, axis=-1)
        for weight, term in (
            (signs * odd, np.sin((2 * n + 1) * angle)),
            (odd, np.cos((2 * n + 1) * angle)),
            (even, np.cos(2 * n * angle)),
            (signs * even, np.cos(2 * n * angle)),
        )
    ]
