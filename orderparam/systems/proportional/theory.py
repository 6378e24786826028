"""Networks at their finite width, and in the limit of infinite width: kernels, order parameters,
predictions.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from orderparam.core.verb import theory
from orderparam.kernels import common_scale
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.newton import newton_fixed_point
from orderparam.systems.proportional import deep
from orderparam.systems.proportional.deep import ONE_OUTPUT, Closure, Kernels
from orderparam.systems.proportional.kernels import (
    Matrix,
    OnePlace,
    Places,
    Response,
    weighted_kernels,
)
from orderparam.systems.proportional.majorise import Data, Layers, majorised_step, minimise
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    BayesianPatchNetwork,
    FullyConnected,
)
from orderparam.systems.proportional.patch_kernels import patch_means
from orderparam.systems.proportional.results import (
    Prediction,
    RenormalisedKernel,
    RenormalisedNetwork,
    log_evidence,
    reached,
)

# ------------------------------------------------------------------------------------------------
# One effective action over (place, output): fully connected, convolutional, locally connected,
# pooled; one and many outputs.
#
# With the renormalised kernel KR of `kernels` and N units or channels,
#
#     F(Q, kappa) = N [ -tr Q (kappa^{-1} - 1) - log det kappa ]
#                   + log det(T + KR) + y^T (T + KR)^{-1} y
#
# is stationary with respect to Q and kappa, at a saddle point (Pacelli et al. 2023, supplement, for
# one number; matrices were derived for this package). If no mean has its own order parameter, kappa
# = Q, and F = N [tr Q - log det Q] + .. is at a minimum, which `majorise` finds. With G, B of
# `Response` and W_IJ = m_I^T A^{-1} m_J - (m_I . a)(m_J . a), the conditions are Q = kappa - kappa
# W kappa / N, kappa^{-1} = 1 + (G - B) / N. With one place and one output Q is one number. All
# minima of the action are then found in the eigenbasis of the kernel (`kernels.common_scale`), and
# the one with the lowest action is taken.

_SWEEPS = 3000


class Stationary(eqx.Module):
    """A stationary point of the action: Q, kappa, F, the value of F at Q = kappa = 1 without data,
    the residual, and the number of evaluations.
    """

    scale: Matrix
    kappa: Matrix
    action: Float[Array, ""]
    constant: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def stationary(
    kernel: OnePlace | Places,
    temperature: Float[Array, ""],
    widths: Float[Array, "layer"],
    separate_means: bool,
) -> Stationary:
    """The stationary point of the action.

    Args:
        separate_means: whether the mean of the activation has its own order parameters; for one
            hidden layer.
    """
    lowest = _lowest(kernel, temperature, widths)
    if not separate_means:
        return lowest
    layers = Layers(widths)

    def step(state: tuple[Matrix, Matrix], _: None) -> tuple[Matrix, Matrix]:
        # Q and kappa are iterated together: a step for kappa by the Riccati equation, and Q follows
        # from kappa.
        response = kernel.respond(*state, temperature)
        kappa = majorised_step(state[1], response.spread, response.pull, layers)
        return kappa - kappa @ (
            response.mean_spread - response.mean_pull
        ) @ kappa / layers.units, kappa

    start = jax.lax.stop_gradient((lowest.scale, lowest.scale))
    few = kernel.size == 1  # with one unknown of each kind a Jacobian is cheap
    solved = newton_fixed_point(step, start) if few else fixed_point(step, start, max_steps=_SWEEPS)
    scale, kappa = solved.value
    prior = (
        jnp.trace(scale) - jnp.trace(jnp.linalg.solve(kappa, scale)) - jnp.linalg.slogdet(kappa)[1]
    )
    action = layers.units * prior + kernel.respond(scale, kappa, temperature).data
    return Stationary(scale, kappa, action, jnp.zeros(()), solved.residual, solved.steps)


def _lowest(
    kernel: OnePlace | Places, temperature: Float[Array, ""], widths: Float[Array, "layer"]
) -> Stationary:
    """Minimum of the action for Q = kappa, that is, with the mean as part of the kernel."""
    constant = jnp.sum(widths) * kernel.size
    if isinstance(kernel, OnePlace) and kernel.size == 1:
        every = common_scale.minima(
            kernel.basis.eigenvalues, kernel.basis.power, temperature, widths
        )
        one = jax.tree.map(lambda x: x[0], every)
        scale = jnp.prod(one.order_parameters)[None, None]
        residual = jnp.where(one.found, one.residual, jnp.inf)
        return Stationary(scale, scale, one.action, constant, residual, jnp.asarray(1))

    def respond(scale: Matrix) -> Data:
        found: Response = kernel.respond(scale, scale, temperature)
        return found.data, found.spread + found.mean_spread, found.pull + found.mean_pull

    found = minimise(respond, jnp.eye(kernel.size), widths)
    return Stationary(
        found.scale,
        found.scale,
        jnp.min(widths) * found.action,
        constant,
        found.residual,
        found.steps,
    )


def prior_kernels(system: BayesianNetwork) -> Kernels:
    """The kernel of infinite width on the training set, between test and training points, and of
    every test point with itself.
    """
    if isinstance(system, FullyConnected):
        return deep.prior_kernels(system)
    assert isinstance(system, BayesianPatchNetwork)
    count, same = system.patch_count, not system.pooled
    scale = jnp.eye(count) if same else jnp.ones((count, count)) / count
    train, _ = weighted_kernels(system, system.train[0], scale, same)
    return train, *weighted_kernels(system, system.test_inputs, scale, same)


def prior_means(system: BayesianNetwork) -> tuple[Float[Array, "train"], Float[Array, "test"]]:
    """The mean of the features of one place on the training set and at the test points, times the
    square root of the read-out variance.
    """
    root = jnp.sqrt(system.readout_variance)
    if isinstance(system, FullyConnected):
        first, second = (system.activation.mean(pairs.first) for pairs in deep.input_pairs(system))
    else:
        assert isinstance(system, BayesianPatchNetwork)
        first, second = (
            jnp.mean(patch_means(system, x), axis=0) for x in (system.train[0], system.test_inputs)
        )
    return root * first, root * second


def one_place(system: BayesianNetwork, separate_means: bool) -> OnePlace:
    """The kernel of a network whose read-out sees one set of features.

    Args:
        separate_means: whether the mean of the activation has its own order parameters.
    """
    kernels, y = prior_kernels(system), system.train[1]
    means = (
        prior_means(system)
        if separate_means
        else (jnp.zeros(y.shape[0]), jnp.zeros(kernels[1].shape[0]))
    )
    return OnePlace.of(*kernels, *means, y)


def has_separate_means(system: BayesianNetwork) -> bool:
    """True if the mean of the activation has its own order parameters: for a non-odd activation and
    one hidden layer.
    """
    return system.depth == 1 and system.activation.parity != "odd"


def _check_closure(system: BayesianNetwork, closure: Closure = "nested") -> None:
    if system.depth > 1 and system.outputs > 1 and closure != "common":
        raise ValueError(
            f"closure = {closure!r}: with several outputs and depth {system.depth} it must be "
            "'common'"
        )


@theory(check=_check_closure)
def finite_width(system: BayesianNetwork, *, closure: Closure = "nested") -> RenormalisedNetwork:
    r"""Prediction of a Bayesian network at its finite width on given data, by kernel
    renormalisation.

    $$ F(Q) = N \big[ \mathrm{tr}\, Q - \log\det Q \big] + \log\det(T + K^R) + y^T (T + K^R)^{-1} y,
       \qquad K^R = \sum_{ij} Q_{ij} K_{ij} $$

    with N the `width` or `channels`, T the `temperature`, $K_{ij}$ the kernel of infinite width
    between the places (and outputs) i and j, and Q the `order_parameters` at the minimum of F: the
    number Q with $K^R = Q K$ for one hidden layer and one output, a matrix over patches for a
    convolution, over outputs for several outputs. The prediction is Gaussian-process regression
    with the kernel $K^R$. The mean of a non-odd activation has an order parameter of its own,
    $\kappa$ (`mean_scales`), in one hidden layer and in the closure "nested".

    Args:
        closure: how the order parameters of a deep fully connected network enter its kernel:
            "nested" (default) in every layer, "common" by their product, "linear" to first order in
            each (see `deep`). The three are equal at depth one and for relu and linear units. With
            several outputs and more than one layer only "common" exists.

    Raises:
        ValueError: for another closure with several outputs and more than one layer.

    Accuracy: exact for linear units in the limit of large P and N at P/N of order one. Other hidden
    units are treated as Gaussian after projection on the data. This is a good approximation for P/N
    up to about 1 and T not small (the page of this topic lists measured errors). The minimum is
    found to 1e-9.

    Cost: one eigendecomposition of the kernel for one place; one Cholesky factorisation for each
    step otherwise.

    Source: Pacelli et al. (2023); Baglioni, Giambagli et al. (2024) for several outputs; Aiudi et
    al. (2025) for patches; kappa is derived here as a matrix.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> found = finite_width(system)
    >>> round(float(found.order_parameters.squeeze()), 6), round(float(found.test_error), 6)
    (1.475702, 0.173836)
    """
    if isinstance(system, FullyConnected) and system.depth > 1 and closure != "common":
        return deep.finite_width_layers(system, closure)
    separate_means, outputs, temperature = (
        has_separate_means(system),
        system.outputs,
        jnp.asarray(system.temperature),
    )
    kernel = (
        Places.of(system, separate_means)
        if isinstance(system, BayesianPatchNetwork) and system.places > 1
        else one_place(system, separate_means)
    )
    found = stationary(kernel, temperature, system.widths, separate_means)
    fields = kernel.predict(found.scale, found.kappa, temperature, system.test[1])

    def by_layer(
        scale: Float[Array, "index other"],
    ) -> Float[Array, "layer place output other_place other_output"]:
        return Layers(system.widths).split(scale).reshape(-1, *(system.places, outputs) * 2)

    return RenormalisedNetwork(
        **fields
        | {"converged": fields["converged"] & reached(found.residual) & jnp.isfinite(found.action)},
        order_parameters=by_layer(found.scale),
        mean_scales=by_layer(found.kappa),
        action=found.action,
        log_evidence=log_evidence(found.action, found.constant, system.train[1].size),
        residual=found.residual,
        steps=found.steps,
    )


@theory
def infinite_width(system: BayesianNetwork) -> Prediction:
    r"""Prediction of the network with infinitely many units: Gaussian-process regression with the
    kernel of the prior.

    $$ \langle f(x) \rangle = k(x)^T (K + T)^{-1} y, \qquad
       \mathrm{Var} f(x) = K(x, x) - k(x)^T (K + T)^{-1} k(x) $$

    with K the kernel of infinite width and T the `temperature`. The width in the system is not
    used.

    Accuracy: to rounding.

    Source: Neal (1996); Lee et al. (2018).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> round(float(infinite_width(system).test_error), 6)
    0.1511
    """
    one = jnp.eye(system.outputs)
    return Prediction(
        **one_place(system, False).predict(
            one, one, jnp.asarray(system.temperature), system.test[1]
        )
    )


@theory(needs=ONE_OUTPUT)
def renormalised_kernel(
    system: BayesianNetwork, *, closure: Closure = "nested"
) -> RenormalisedKernel:
    r"""Renormalised kernel with which a network of finite width predicts.

    $$ K^R = \sum_{ij} Q_{ij} (K_{ij} - m_i m_j^T) + \kappa_{ij}\, m_i m_j^T $$

    with Q and $\kappa$ the order parameters of `finite_width` and $m_i$ the mean of the features at
    place i. The prediction of `finite_width` is Gaussian-process regression with this kernel.

    Args:
        closure: as in `finite_width`. Default "nested".

    Raises:
        ValueError: for several outputs, where the kernel of a fully connected network is Q (x) K.

    Accuracy: that of `finite_width`.

    Source: Pacelli et al. (2023); Aiudi et al. (2025).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> renormalised_kernel(system).train.shape
    (5, 5)
    """
    found = finite_width(system, closure=closure)
    train, rows, diagonal = kernel_at(system, found.order_parameters, found.mean_scales, closure)
    return RenormalisedKernel(train=train, rows=rows, diagonal=diagonal, converged=found.converged)


def kernel_at(
    system: BayesianNetwork, scales: Array, kappas: Array, closure: str = "nested"
) -> Kernels:
    """The renormalised kernel of one output at given order parameters of shape (layer, place, 1,
    place, 1).
    """
    if isinstance(system, BayesianPatchNetwork) and system.places > 1:
        separate_means = has_separate_means(system)
        places, shape = Places.of(system, separate_means), (system.places, system.places)
        matrices = scales.reshape(shape), kappas.reshape(shape)
        rows, own = places.rows(*matrices)
        return places.matrix(*matrices), rows[:, 0], own[:, 0, 0]
    scales, kappas = scales.reshape(-1), kappas.reshape(-1)
    if isinstance(system, FullyConnected) and system.depth > 1:
        return deep.kernels(system, scales, kappas, closure)
    train, rows, diagonal = (scales[0] * part for part in prior_kernels(system))
    if has_separate_means(system):
        (mean, test_mean), excess = prior_means(system), kappas[0] - scales[0]
        train, rows = (
            train + excess * jnp.outer(mean, mean),
            rows + excess * jnp.outer(test_mean, mean),
        )
        diagonal = diagonal + excess * test_mean**2
    return train, rows, diagonal
