"""Spectrum of (1/p) Phi^T Phi before and after the step, where Phi holds p features of n examples.
The bulk is isotropic, and there is one group of neurons.

At z = E + i epsilon, with load = n/p, beta = p/d and averages over the projection k on the spike,

    Gamma = 1/(L + M/(1 + beta Gamma M)),   L = -z + load E mu_2^2/(1+V),   M = load E mu_1^2/(1+V),
    V(k) = mu_1^2 V1 + mu_2^2 Gamma,        V1 = Gamma/(1 + beta Gamma M),

and the density is Im Gamma / pi. Outside this density there are p - n eigenvalues zero if p > n,
and one eigenvalue n E mu_0(k)^2 of the features' common mean, which grows with the sizes (Dandi,
Pesce et al. 2024; for random features Péché 2019; Benigni, Péché 2021).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, part, structure
from orderparam.core.verb import theory
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.saddle import ConditionalMoments, moments, projection_rule
from orderparam.systems.one_step.theory import spiked, untrained

Scalar = Float[Array, ""]

_WIDTH = 1e-5  # imaginary part of z, as a fraction of E
# steps in which the imaginary part is reduced from |z|: at the edges of the bulk Newton's method
# needs a nearby start
_STAGES = 6
_PER_BIN = 3  # number of points in each bin over which the density is averaged
_SCAN = np.geomspace(1e-4, 1e3, 141)  # -Gamma, from far outside the bulk to its edge
# steps of plain iteration, which stay on the branch of a resolvent, and then of Newton's method
_REAL_STEPS, _NEWTON_STEPS = 60, 12
_SOLVED = 1e-9  # relative error of V1 below which it counts as solved


class FeatureMatrix(System):
    """Features of a training set, before (`trained` False) or after the step, and the bins in which
    their spectrum is counted.

    Bins have equal widths in log E from `lowest` to `highest`.

    Raises:
        ValueError: for several groups of neurons, and for `lowest` >= `highest`.
    """

    learner: OneStep = part("the network, its step and the training set of its read-out")
    trained: bool = structure("whether the step has been taken", default=True)
    bins: int = structure("number of bins", minimum=1, default=40)
    lowest: float = parameter("lower end of the bins", above=0, default=1e-3)
    highest: float = parameter("upper end of the bins", above=0, default=10.0)

    def __check_init__(self) -> None:
        if self.learner.groups != 1:
            raise ValueError("FeatureMatrix.learner has several groups of neurons: must have one")
        if is_number(self.lowest) and is_number(self.highest) and not self.lowest < self.highest:
            raise ValueError(
                f"FeatureMatrix.lowest = {self.lowest}: must be < highest = {self.highest}"
            )

    @property
    def edges(self) -> Float[Array, "edge"]:
        """Ends of the bins."""
        return jnp.exp(jnp.linspace(jnp.log(self.lowest), jnp.log(self.highest), self.bins + 1))


class BinnedSpectrum(Result):
    """Spectrum of the features in bins.

    Fields:
        eigenvalue: geometric centre of each bin.
        density: density in each bin, per unit of eigenvalue; it integrates to 1, including the zero
            eigenvalues.
        edge: largest eigenvalue other than that of the features' mean.
        mean_eigenvalue: eigenvalue of the features' mean, n E mu_0^2; 0 without a mean.
        converged: whether all equations were solved.
        residual: largest residual.
    """

    eigenvalue: Float[Array, "bin"]
    density: Float[Array, "bin"]
    edge: Float[Array, ""]
    mean_eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class _Bulk(NamedTuple):
    load: Scalar
    aspect: Scalar | float
    weight: Float[Array, "node"]
    features: ConditionalMoments


@theory
def feature_spectrum(system: FeatureMatrix) -> BinnedSpectrum:
    r"""Density of the features' spectrum in bins, its upper edge, and the eigenvalue of the mean.

    With load $n/p$, $\beta = p/d$, moments $\mu_i(k)$ of the features given the projection $k$ on
    the spike, and $z = E + i \epsilon$,

    $$ \Gamma = \frac{1}{L + M / (1 + \beta \Gamma M)} , \qquad
       L = -z + \frac np E \frac{\mu_2^2}{1 + V} , \qquad M = \frac np E \frac{\mu_1^2}{1 + V} , $$

    $$ V(k) = \frac{\mu_1^2\, \Gamma}{1 + \beta \Gamma M} + \mu_2^2\, \Gamma , \qquad
       \text{density}(E) = \frac{\mathrm{Im}\, \Gamma}{\pi} , \qquad
       \text{mean\_eigenvalue} = n E \mu_0^2 . $$

    Accuracy: exact in the limit of large sizes for an isotropic bulk; densities are averages over
    three points of each bin, to 1e-7 of the largest.

    Source: Dandi, Pesce, Cui, Krzakala, Lu, Loureiro (2024); without the step Péché (2019) and
    Benigni, Péché (2021).

    >>> found = feature_spectrum(FeatureMatrix(OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1), bins=4))
    >>> found.density.shape, round(float(found.edge), 4)
    ((4,), 2.3338)
    """
    features = spiked(system.learner) if system.trained else untrained(system.learner)
    bulk = _bulk(features)
    edges = system.edges
    shares = (jnp.arange(_PER_BIN) + 0.5) / _PER_BIN
    points = edges[:-1, None] + (edges[1:] - edges[:-1])[:, None] * shares
    found = jax.vmap(lambda value: _density(bulk, value))(points.ravel())
    mean = (
        bulk.load
        * (bulk.weight @ bulk.features.mean**2)
        * features.width_ratio
        * features.input_dim
    )
    return BinnedSpectrum(
        eigenvalue=jnp.sqrt(edges[1:] * edges[:-1]),
        density=jnp.mean(found.density.reshape(points.shape), axis=1),
        edge=_edge(bulk),
        mean_eigenvalue=mean,
        converged=jnp.all(found.converged),
        residual=jnp.max(found.residual),
    )


class SpectralDensity(Result):
    """Density of the features' spectrum at one eigenvalue.

    Fields:
        density: Im Gamma(E + i epsilon) / pi.
        residual: residual of the equations.
        converged: whether the equations were solved.
    """

    density: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def spectral_density(
    system: SpikedFeatures, eigenvalue: float, width: float | None = None
) -> SpectralDensity:
    r"""Density of the features' spectrum at one eigenvalue.

    $$ \text{density} = \frac1\pi\, \mathrm{Im}\, \Gamma(E + i \epsilon) $$

    with $\Gamma$ of `feature_spectrum`.

    Args:
        eigenvalue: E > 0.
        width: epsilon; None (the default) for 1e-5 E.

    Accuracy: in the bulk, up to terms of order epsilon.

    Source: Dandi, Pesce, Cui, Krzakala, Lu, Loureiro (2024).

    >>> system = SpikedFeatures(2.0, 1.0, 0.9, (1.0,), ridge=0.1)
    >>> round(float(spectral_density(system, 0.5).density), 4)
    0.4698
    """
    return _density(_bulk(system), eigenvalue, width)


def _bulk(features: SpikedFeatures) -> _Bulk:
    k, weight = projection_rule(features.labels, jnp.zeros(()))
    spike, norm = (features.spikes[0], features.norms[0])
    return _Bulk(
        features.load, features.width_ratio, weight, moments(features.activation, spike * k, norm)
    )


def _pulls(bulk: _Bulk, gamma: Any, response: Any) -> tuple[Any, Any]:
    """The values of L + z and M, from the equations of the module."""
    features = bulk.features
    share = bulk.load * bulk.weight / (1 + features.linear**2 * response + features.rest * gamma)
    return share @ features.rest, share @ features.linear**2


def _next(bulk: _Bulk, z: Any, gamma: Any, response: Any) -> tuple[Any, Any]:
    """The values of Gamma and V1, from the equations of the module."""
    flat, slope = _pulls(bulk, gamma, response)
    gamma = 1 / (flat - z + slope / (1 + bulk.aspect * gamma * slope))
    return gamma, gamma / (1 + bulk.aspect * gamma * slope)


def _density(bulk: _Bulk, eigenvalue: Scalar | float, width: Any = None) -> SpectralDensity:
    width = _WIDTH * eigenvalue if width is None else width

    def update(state: Float[Array, "4"], args: tuple) -> Float[Array, "4"]:
        bulk, z = args
        gamma, response = _next(bulk, z, state[0] + 1j * state[1], state[2] + 1j * state[3])
        inside = (state[1] > 0) & (state[3] > 0)  # the branch of a resolvent
        return jnp.where(
            inside, jnp.stack([gamma.real, gamma.imag, response.real, response.imag]), jnp.nan
        )

    start = -1 / (eigenvalue * (1 + 1j))
    first = jnp.stack([start.real, start.imag, start.real, start.imag])

    def nearer(
        state: Float[Array, "4"], height: Scalar
    ) -> tuple[Float[Array, "4"], tuple[Scalar, Bool[Array, ""]]]:
        z = eigenvalue + 1j * height
        found = newton_fixed_point(
            update, state, (bulk, z), damping=0.3, tolerance=1e-12, max_steps=1000
        )
        return found.value, (found.residual, found.converged)

    value, (residual, converged) = jax.lax.scan(
        nearer, first, jnp.geomspace(eigenvalue, width, _STAGES)
    )
    return SpectralDensity(
        density=value[1] / jnp.pi, residual=residual[-1], converged=converged[-1]
    )


def _edge(bulk: _Bulk) -> Scalar:
    """Upper edge of the bulk. To the right of it Gamma is real and negative, and E decreases as
    -Gamma grows until the edge, which is the first minimum of E.
    """

    def update(response: Scalar, args: tuple[Scalar, _Bulk]) -> Scalar:
        gamma, bulk = args
        return gamma / (1 + bulk.aspect * gamma * _pulls(bulk, gamma, response)[1])

    def value(log_gamma: Scalar, bulk: _Bulk) -> tuple[Scalar, Scalar]:
        """Eigenvalue E, and the distance of V1 from a solution of its equation, which may have no
        solution beyond the edge."""
        gamma = -jnp.exp(log_gamma)

        def newton(_: int, response: Scalar) -> Scalar:
            following, slope = jax.jvp(
                lambda r: update(r, (gamma, bulk)), (response,), (jnp.ones(()),)
            )
            return response + (following - response) / (1 - slope)

        near = jax.lax.fori_loop(
            0, _REAL_STEPS, lambda _, response: update(response, (gamma, bulk)), gamma
        )
        response = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, near)
        flat, slope = _pulls(bulk, gamma, response)
        wrong = jnp.abs(update(response, (gamma, bulk)) / response - 1)
        return flat + slope / (1 + bulk.aspect * gamma * slope) - 1 / gamma, wrong

    def falling(log_gamma: Scalar, bulk: _Bulk) -> Scalar:
        """-dE/d ln(-Gamma), negative where V1 has no solution."""
        (_, wrong), (rise, _) = jax.jvp(lambda u: value(u, bulk), (log_gamma,), (jnp.ones(()),))
        return jnp.where(wrong < _SOLVED, -rise, -jnp.ones(()))

    scan = jnp.log(jnp.asarray(_SCAN))
    turn = jnp.argmax(jax.vmap(falling, in_axes=(0, None))(scan, bulk) < 0)
    lowest = decreasing_root(falling, scan[jnp.maximum(turn - 1, 0)], scan[turn], bulk)
    return value(lowest.value, bulk)[0]
