r"""The infinitely wide network averaged over Gaussian data, with every mode of its kernel.

`gaussian_process` keeps the functions h_k(z) of the target's direction as modes. At a few inputs
these are not eigenfunctions: the kernel saturates with the length of an input, which mixes h_k with
h_{k+2}. Its eigenfunctions are products of a spherical harmonic of the direction of x and a
function of the length r = |x|. For harmonics of degree l in d inputs these functions are those of
the kernel

    B_l(r, r') = E_t K(r, r', t) P_l(t),       K = s E phi(w . x) phi(w . x'),  t = cos(x, x')

under the law of r, with P_l Gegenbauer's polynomials, P_l(1) = 1, and t the cosine of two random
directions. Every eigenvalue occurs N_l times, the number of these harmonics.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from orderparam.core.needs import equal
from orderparam.core.verb import theory
from orderparam.gaussian.hermite import hermite
from orderparam.kernels import Spectrum, effective_ridge
from orderparam.kernels.spectra import zonal_polynomials
from orderparam.systems.kernel_adaptation.network import HiddenLayer, on_modes
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ACCURACY, ModePrediction
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

_RADII, _ANGLES, _DEGREE = 24, 96, 25
_ROUNDING = 1e-15  # eigenvalues below this share of the trace are not told from zero


def _gauss(centres: Array, off: Array) -> tuple[Array, Array]:
    """Gauss's rule of the polynomials whose recurrence has these coefficients: nodes and weights,
    whose sum is 1."""
    nodes, vectors = jnp.linalg.eigh(jnp.diag(centres) + jnp.diag(off, 1) + jnp.diag(off, -1))
    return nodes, vectors[0] ** 2


def _radii(d: Float[Array, ""]) -> tuple[Array, Array]:
    """The rule for the length of d standard normal numbers, half of whose square has a Gamma law:
    Laguerre's polynomials."""
    k = jnp.arange(_RADII, dtype=float)
    nodes, weights = _gauss(2 * k + d / 2, jnp.sqrt(k[1:] * (k[1:] + d / 2 - 1)))
    return jnp.sqrt(2 * nodes), weights


def _cosines(d: Float[Array, ""]) -> tuple[Array, Array]:
    """The rule for the cosine of two random directions: Gegenbauer's polynomials."""
    k = jnp.arange(1, _ANGLES, dtype=float)
    squares = k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4))
    return _gauss(jnp.zeros(_ANGLES), jnp.sqrt(squares.at[0].set(1 / d)))


def _harmonics(d: Float[Array, ""], degree: int) -> Float[Array, "degree"]:
    """The numbers N_l of spherical harmonics of degree l = 0 .. degree."""
    l = np.arange(1.0, degree + 1)
    log_choices = gammaln(l + d - 2) - gammaln(l) - gammaln(d - 1)
    return jnp.append(1.0, (2 * l + d - 2) / l * jnp.exp(log_choices))


class _Shells(eqx.Module):
    """Quadrature over Gaussian inputs as lengths r and cosines t with a fixed direction.

    `harmonics` are sqrt(N_l) P_l(t) times the weights of the cosines, so that a sum over cosines
    projects on the harmonic of degree l that depends on t alone.
    """

    radius: Float[Array, "radius"]
    weight: Float[Array, "radius"]
    cosine: Float[Array, "cosine"]
    harmonics: Float[Array, "degree cosine"]
    counts: Float[Array, "degree"]

    @classmethod
    def of(cls, dim: float | Array, degree: int) -> "_Shells":
        """The rule in this number of dimensions, with harmonics up to this degree."""
        d: Any = jnp.asarray(dim, float)
        cosine, weight = _cosines(d)
        counts = _harmonics(d, degree)
        polynomials = jnp.stack(list(zonal_polynomials(cosine, d, degree)))
        return cls(*_radii(d), cosine, jnp.sqrt(counts)[:, None] * weight * polynomials, counts)

    def parts(self, degrees: Sequence[int]) -> Float[Array, "mode degree radius"]:
        """The components of h_k(z) on the harmonics, as functions of r."""
        z = self.radius[:, None] * self.cosine
        return jnp.einsum(
            "kra,la->klr", jnp.stack([hermite(k, z) for k in degrees]), self.harmonics
        )

    def operators(
        self, layer: HiddenLayer, others: Float[Array, "other"]
    ) -> Float[Array, "degree radius other"]:
        """B_l(r, r') at the lengths of the rule and at others."""
        r, other = self.radius[:, None, None], others[None, :, None]
        v = layer.weight_variance / layer.dim
        kernel = layer.phi.two_point(v * r**2, v * r * other * self.cosine, v * other**2)
        found = jnp.einsum("rsa,la->lrs", kernel, self.harmonics)
        return layer.readout_variance * found / jnp.sqrt(self.counts)[:, None, None]


def projections(
    system: TwoLayerNetwork, x: Float[Array, "example input"]
) -> Float[Array, "mode example"]:
    r"""The projections $E_{x'} K(x', x) h_k(w_* \cdot x')$ of the kernel of the infinitely wide
    network on the modes, at inputs x whose first axis is w_*.

    The average over x' is exact for polynomials of its length squared up to degree 47 and of its
    cosine with x up to degree 95.
    """
    layer, degree = system.hidden, max(system.hidden.degrees)
    shells, length = _Shells.of(layer.dim, degree), jnp.linalg.norm(x, axis=1)
    own = jnp.sqrt(shells.counts)[:, None] * jnp.stack(
        list(zonal_polynomials(x[:, 0] / length, layer.dim, degree))
    )
    parts = shells.weight * shells.parts(layer.degrees)
    return jnp.einsum("klr,lrx,lx->kx", parts, shells.operators(layer, length), own)


@theory(needs={"activation.name": equal("erf"), "absolute": equal(0.0)})
def gaussian_process_all_modes(system: TwoLayerNetwork) -> ModePrediction:
    r"""Output of the infinitely wide network (NNGP) on the modes, averaged over data, with all
    eigenfunctions of its kernel.

    $$ f = \sum_l B_l (B_l + \kappa)^{-1} y_l, \qquad
       n = \frac{T}{\kappa} + \sum_l N_l\, \mathrm{tr}\, B_l (B_l + \kappa)^{-1} $$

    with $B_l(r, r') = E_t K P_l(t)$ the kernel of the spherical harmonics of degree l as an
    operator on functions of r = |x|, $N_l$ the number of these harmonics, $y_l(r)$ the component of
    the target on the one that depends on $w_* \cdot x$ alone, and $\kappa$ the effective ridge.
    `output` is the projection of f on $h_k$. In the limit of many inputs the $h_k$ are
    eigenfunctions, as in `gaussian_process`, whose effective ridge however counts all cubic and
    higher modes without target as not learned.

    Raises:
        ValueError: unless the activation is "erf" and the target a polynomial.

    Accuracy: 1e-8 at up to some hundred inputs. The average over data is that of Gaussian random
    features (equivalent kernel with effective ridge). Harmonics of degrees above 25 count as not
    learned; `residual` is the learned share at this degree.

    Source: Canatar, Bordelon, Pehlevan (2021) for the average over data; the radial operators are
    derived here.

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     8, 100, 8000, 0.005, hermite_target({1: 1, 3: -0.1}), 0.05, 0.5
    ... )
    >>> np.asarray(gaussian_process_all_modes(network).learnability[:2]).round(4).tolist()
    [1.0007, 0.818]
    """
    layer = system.hidden
    shells = _Shells.of(layer.dim, _DEGREE)
    root = jnp.sqrt(shells.weight)
    operators = shells.operators(layer, shells.radius) * root[:, None] * root
    power = layer.weight_variance * shells.radius**2 / layer.dim
    trace = layer.readout_variance * (shells.weight @ layer.phi.two_point(power, power, power))
    eigenvalues = jnp.linalg.eigvalsh(operators)
    eigenvalues = jnp.where(eigenvalues > _ROUNDING * trace, eigenvalues, 0.0)
    tail = jnp.maximum(trace - shells.counts @ jnp.sum(eigenvalues, axis=1), 0.0)
    spectrum = Spectrum(
        eigenvalues.ravel(),
        jnp.zeros(eigenvalues.size),
        jnp.repeat(shells.counts, _RADII),
        tail,
    )
    found = effective_ridge(spectrum, layer.n_train, layer.temperature)

    coefficients = layer.target.polynomial
    target = jnp.tensordot(coefficients, root * shells.parts(range(coefficients.shape[0])), 1)
    ridged = operators + found.threshold * jnp.eye(_RADII)
    learned = operators @ jnp.linalg.solve(ridged, target[..., None])
    output = jnp.tensordot(root * shells.parts(layer.degrees), learned[..., 0], 2)
    largest = jnp.max(eigenvalues[-2:])
    residual = found.residual + largest / (largest + found.threshold)
    return ModePrediction(
        **on_modes(layer, output, jnp.ones(())),
        eigenvalue_ratio=jnp.ones(()) if 1 in layer.degrees else jnp.asarray(jnp.nan),
        ridge_ratio=found.threshold / layer.ridge,
        residual=residual,
        converged=found.converged & (residual < ACCURACY),
    )
