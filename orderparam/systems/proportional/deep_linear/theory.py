"""Linear networks of any depth: the scale of the output's kernel and the kernel of every layer.

The outputs of the network are a Gaussian process with kernel K, multiplied by sqrt(p) with p = q_1
q_2 .. q_L. The factor comes from the read-out and the layers above the first. The q_l are
independent and have the law Gamma(N_l / 2) with mean one, so that N_l q_l is the squared length of
N_l standard normals. The posterior

    p(p | y) ~ p(p) N(y; 0, T + p K)

is a density of one variable for any depth, and the prior density of log p is the convolution of the
densities of log q_l (Li and Sompolinsky 2021 at the saddle point; Hanin and Zlokapa 2023 for the
exact evidence). For other activations this is the closure `common` with the fluctuations of the
order parameter.

For every layer l, f = a_l . h^l with the effective read-out a_l of the layer, whose squared length
is p_l = q_l q_(l+1) .. q_L times its prior value. The data constrain the units of layer l only
along a_l, where h^l is f / |a_l|. In the N_l - 1 directions orthogonal to a_l the units have the
kernel of the layer below. With K_l the empirical kernel of layer l, divided by the prior variances
of all layers above,

    <K_l> = (1 - 1/N_l) <K_(l-1)> + (1/N_l) <f f^T / p_l>,    <K_0> = K,

is exact at every width (derived here; at the saddle point and T = 0 it is the mean kernel of Li and
Sompolinsky).
"""

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import equal
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.random_scale import AtScale, ScaleDensity
from orderparam.solve.root import decreasing_root
from orderparam.systems.proportional.deep import ONE_OUTPUT, prior_basis
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.results import IntegratedNetwork, log_evidence, losses


class LinearLayers(Result):
    """The kernels and read-outs of a linear network in every layer l = 1..L, and its losses.

    Fields:
        scales: posterior mean of p_l = q_l .. q_L, the squared length of the effective read-out of
            layer l divided by its prior value; p_1 multiplies the kernel of the output.
        on_target: y^T <K_l> y with the posterior mean <K_l> of the kernel of layer l, divided by
            its prior value.
        trace: trace of <K_l>, divided by its prior value.
        test_error: mean of <|y - f|^2> over the test set, the sum of bias and variance.
        test_bias: mean of |y - <f>|^2 over the test set.
        test_variance: mean of <|f - <f>|^2> over the test set.
    """

    scales: Float[Array, "layer"]
    on_target: Float[Array, "layer"]
    trace: Float[Array, "layer"]
    test_error: Float[Array, ""]
    test_bias: Float[Array, ""]
    test_variance: Float[Array, ""]


class PredictedLayers(LinearLayers):
    """The layers of a linear network as the theory predicts them.

    Fields:
        converged: whether all numbers are finite and the equation for the scale is solved.
    """

    converged: Bool[Array, ""]


@theory(needs=ONE_OUTPUT)
def integrated_width(system: FullyConnected) -> IntegratedNetwork:
    r"""Prediction of a fully connected network with one output, averaged over the scale of its
    kernel: exact for linear units at every width.

    $$ p(p \mid y) \propto p(p)\, N(y; 0, T + p K), \qquad p = q_1 q_2 \dots q_L, \qquad
       q_l \sim \Gamma(N_l / 2) $$

    with mean one for every $q_l$, K the kernel of infinite width, $N_l$ the `width` and T the
    `temperature`; `scale` is the posterior mean of p. For other units it is the closure "common"
    with the fluctuations of the order parameter.

    Raises:
        ValueError: for several outputs.

    Accuracy: the integral over log p uses the trapezoidal rule with 1025 nodes, centred at the
    saddle point.

    Source: Hanin, Zlokapa (2023) for the exact evidence; Li, Sompolinsky (2021) at the saddle
    point.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(
    ...     x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1, activation="linear"
    ... )
    >>> round(float(integrated_width(system).log_evidence), 6)
    -3.546861
    """
    basis, temperature = prior_basis(system), jnp.asarray(system.temperature)
    density = ScaleDensity.of(basis, temperature, system.widths)
    given = AtScale.of(jnp.exp(density.log_scale), basis, temperature)
    # One number p multiplies the whole kernel, so that the posterior over networks is an average of
    # Gaussian processes over p.
    log_posterior = density.log_prior(jnp.zeros(system.depth)) + given.log_likelihood
    total = logsumexp(log_posterior)
    weights = jnp.exp(log_posterior - total)

    count = given.targets.size
    means = given.means
    mean = weights @ means
    # The posterior variance is the mean over p of the variance at given p, plus the variance over p
    # of the mean at given p.
    variance = weights @ (given.variances + (means - mean) ** 2)
    fitted_residuals = temperature * given.targets / given.spectrum
    average_residual = weights @ fitted_residuals
    train_bias = jnp.sum(average_residual**2) / count
    own = jnp.sum(given.train_variances, axis=1)
    train_variance = (
        weights @ (own + jnp.sum((fitted_residuals - average_residual) ** 2, axis=1)) / count
    )
    covariance, evidence = (
        jnp.mean(variance)[None, None],
        log_evidence(-2 * (total + jnp.log(density.step)), 0.0, count),
    )
    fields = losses(
        train_bias, train_variance, mean[:, None], variance[:, None], covariance, system.test[1]
    )
    return IntegratedNetwork(
        **fields | {"converged": fields["converged"] & jnp.isfinite(evidence)},
        scale=weights @ given.scales,
        log_evidence=evidence,
    )


LINEAR = ONE_OUTPUT | {"activation.name": equal("linear")}


def _climb(
    widths: Float[Array, "layer"], squares: Float[Array, "layer"], prior: Float[Array, ""]
) -> Float[Array, "layer"]:
    """Quadratic form of <K_l> in every layer, divided by its prior value. The arguments are the
    widths, the quadratic form of <f f^T / p_l> in every layer, and that of K."""
    ratio, found = jnp.ones(()), []
    for width, square in zip(widths, squares):
        ratio = (1 - 1 / width) * ratio + square / (width * prior)
        found.append(ratio)
    return jnp.stack(found)


@theory(needs=LINEAR)
def linear_layers(system: FullyConnected) -> PredictedLayers:
    r"""Kernels of all layers of a linear network, the lengths of their effective read-outs and the
    losses: exact at every width.

    $$ \langle K_l \rangle = \Big(1 - \frac{1}{N_l}\Big) \langle K_{l-1} \rangle
       + \frac{1}{N_l} \left\langle \frac{f f^T}{p_l} \right\rangle, \qquad
       p_l = q_l\, q_{l+1} \dots q_L, \qquad \langle K_0 \rangle = K $$

    with $K_l$ the empirical kernel of layer l times the prior variances of the layers above it,
    $N_l$ the `width`, $N_l q_l$ the squared length of $N_l$ standard normals at the prior, and f
    the outputs at the training points. The averages are over $p(q \mid y) \propto p(q)\,
    N(y; 0, T + p_1 K)$.

    Raises:
        ValueError: for units that are not linear, and for several outputs.

    Accuracy: that of `integrated_width`, which has the same predictions.

    Source: derived here; Hanin, Zlokapa (2023) for the evidence.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 6))
    >>> system = FullyConnected(
    ...     x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1, depth=2, activation="linear"
    ... )
    >>> np.asarray(linear_layers(system).on_target).round(4).tolist()
    [1.7142, 2.3603]
    """
    basis, temperature, depth = prior_basis(system), jnp.asarray(system.temperature), system.depth
    density = ScaleDensity.of(basis, temperature, system.widths)
    given = AtScale.of(jnp.exp(density.log_scale), basis, temperature)
    # row l - 1 contains ones for the layers l .. L, because p_l is the product of their q
    above = jnp.triu(jnp.ones((depth, depth)))
    plain = density.log_prior(jnp.zeros(depth)) + given.log_likelihood
    total = logsumexp(plain)

    def weighted(exponents: Float[Array, "layer"]) -> Float[Array, "node"]:
        return jnp.exp(density.log_prior(exponents) + given.log_likelihood - total)

    scales = jnp.stack([jnp.sum(weighted(row)) for row in above])
    inverse = jnp.stack([weighted(-row) for row in above])
    along, whole = given.train_squares
    weights, means = jnp.exp(plain - total), given.means
    mean = weights @ means
    bias = jnp.mean((system.test[1][:, 0] - mean) ** 2)
    variance = jnp.mean(weights @ (given.variances + (means - mean) ** 2))
    return PredictedLayers(
        scales=scales,
        on_target=_climb(system.widths, inverse @ along, basis.eigenvalues @ basis.power),
        trace=_climb(system.widths, inverse @ whole, jnp.sum(basis.eigenvalues)),
        test_error=bias + variance,
        test_bias=bias,
        test_variance=variance,
        converged=jnp.isfinite(total) & jnp.isfinite(bias + variance) & jnp.all(scales > 0),
    )


def _check_interpolates(system: FullyConnected, **options: Any) -> None:
    examples, inputs = system.train[0].shape
    if examples > inputs:
        raise ValueError(
            f"FullyConnected.inputs: {examples} examples of {inputs} inputs: must be at most as "
            "many examples as inputs, which a linear network can fit at zero temperature"
        )


@theory(check=_check_interpolates, needs=LINEAR)
def zero_temperature_layers(system: FullyConnected) -> PredictedLayers:
    r"""Layers of a wide linear network at zero temperature, by the closed form of back-propagating
    kernel renormalisation.

    $$ 1 - u_l = \frac{P}{N_l} \Big( 1 - \frac{r_0}{u_1 u_2 \dots u_L} \Big), \qquad
       r_0 = \frac{1}{P}\, y^T K^{-1} y $$

    with $N_l$ the `width` and K the kernel of infinite width. With equal widths and $\alpha = P/N$,
    u is the one positive root of $u^{L+1} - (1 - \alpha) u^L - \alpha r_0 = 0$. The effective
    read-out of layer l has $p_l = u_l \dots u_L$, the mean prediction $k^T K^{-1} y$ does not
    depend on the width, and the variance of the prediction is $p_1$ times that of infinite width.
    The kernels follow as in `linear_layers`. The `temperature` is not used.

    Raises:
        ValueError: for units that are not linear, several outputs, and more examples than inputs.

    Accuracy: to rounding, in the limit of large P and N at fixed P/N.

    Source: Li, Sompolinsky (2021), where r_0 is written with sigma^2 for the prior variances.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 6))
    >>> system = FullyConnected(
    ...     x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1, depth=2, activation="linear"
    ... )
    >>> np.asarray(zero_temperature_layers(system).scales).round(4).tolist()
    [1.1032, 1.0503]
    """
    basis, widths = prior_basis(system), system.widths
    count = basis.targets.shape[0]
    least = jnp.minimum(jnp.min(widths), count)
    fit = jnp.sum(basis.power / basis.eigenvalues)  # P r_0

    def excess(log: Float[Array, ""], args: tuple[Array, Array]) -> Float[Array, ""]:
        """log P r_0 - log (P + c) p with c = N_l (u_l - 1), the same for all layers; c + least =
        exp(log) keeps all factors positive."""
        widths, fit = args
        moved = jnp.exp(log)
        factors = jnp.log((moved + widths - least) / widths)
        return jnp.log(fit) - jnp.log(moved + count - least) - jnp.sum(factors)

    found = decreasing_root(excess, jnp.asarray(-300.0), jnp.asarray(300.0), (widths, fit))
    parameters = 1 + (jnp.exp(found.value) - least) / widths
    scales = jnp.cumprod(parameters[::-1])[::-1]
    given = AtScale.of(scales[:1], basis, jnp.zeros(()))
    bias = jnp.mean((system.test[1][:, 0] - given.means[0]) ** 2)
    variance = jnp.mean(given.variances[0])
    along, whole = given.train_squares
    return PredictedLayers(
        scales=scales,
        on_target=_climb(widths, along[0] / scales, basis.eigenvalues @ basis.power),
        trace=_climb(widths, whole[0] / scales, jnp.sum(basis.eigenvalues)),
        test_error=bias + variance,
        test_bias=bias,
        test_variance=variance,
        converged=found.converged & jnp.isfinite(bias + variance),
    )
