"""Deep fully connected networks: an order parameter in every layer, and three closures of the
theory.

Let K^0 = v_0 x.x'/d, and let k be the two-point function of the activation. The kernels of the
layers follow from one another by C^{(l)} = s_l r_l k(C^{(l-1)}) with C^{(0)} = K^0, where r_l is
the variance of the weights that leave layer l. The renormalised kernel at the order parameters Q_1
.. Q_L is

    nested    C^{(L)} at s = Q                                          (Pacelli et al. 2023)
    common    Q_1 Q_2 .. Q_L C^{(L)} at s = 1: only the product matters
    linear    prod_l (1 + (Q_l - 1) d/ds_l) C^{(L)} at s = 1: linear in every Q_l

The three closures are inequivalent approximations, except at depth one and for activations with k(s
a, s c, s b) = s k(a, c, b) (relu, linear).

An activation with a mean m(x) = E phi(h(x)) has a second order parameter kappa_l in every layer,
which multiplies the kernel m m^T of the mean (`theory` treats depth one). The closure "nested" is
then C^{(l)} = r_l [Q_l (k(C^{(l-1)}) - m m^T) + kappa_l m m^T] (derived for this package, not in
the cited papers). The other two closures treat the mean as part of the kernel, kappa_l = Q_l.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Float

from orderparam.core.needs import equal
from orderparam.core.verb import theory
from orderparam.kernels import common_scale
from orderparam.kernels.common_scale import BRANCHES, Eigenbasis, Minima
from orderparam.solve.minimum import differentiated, newton_minimum
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.proportional.kernels import data_term
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.results import (
    Branches,
    RenormalisedNetwork,
    log_evidence,
    reached,
    regression,
)

Closure = Literal["nested", "common", "linear"]
Scales = Float[Array, "layer"]
Kernels = tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]]

# The scan of `branches` for further minima: the number of values of log Q_l, equal in all layers,
# and their range, which contains all minima found so far.
_SCAN = 61
_RANGE = (-9.0, 9.0)
_SAME = 1e-6  # minima closer than this in every log Q_l are the same


class Pairs(eqx.Module):
    """Covariances of one layer between two sets of inputs, and the variances of each set."""

    first: Float[Array, "first"]
    cross: Float[Array, "first second"]
    second: Float[Array, "second"]

    @classmethod
    def of(
        cls,
        x1: Float[Array, "first dim"],
        x2: Float[Array, "second dim"],
        variance: Float[Array, ""],
    ) -> "Pairs":
        """Covariances v x.x'/d of the pre-activations of the first layer."""
        scale = variance / x1.shape[-1]
        return cls(
            scale * jnp.sum(x1**2, axis=1), scale * x1 @ x2.T, scale * jnp.sum(x2**2, axis=1)
        )

    def map(self, rule: Callable[[Array, Array, Array], Array]) -> "Pairs":
        """New covariances, from a rule (a, c, b) -> covariance that is applied to all pairs of
        inputs and to every input with itself."""
        return Pairs(
            rule(self.first, self.first, self.first),
            rule(self.first[:, None], self.cross, self.second[None, :]),
            rule(self.second, self.second, self.second),
        )

    def scaled(self, factor: Float[Array, ""] | float) -> "Pairs":
        """Covariances and variances multiplied by a number."""
        return jax.tree.map(lambda x: factor * x, self)


def input_pairs(system: FullyConnected) -> tuple[Pairs, Pairs]:
    """Covariances K^0 of the training set, and those between test and training points."""
    x, variance = system.train[0], system.variances[0]
    return Pairs.of(x, x, variance), Pairs.of(system.test_inputs, x, variance)


def renormalised(
    system: FullyConnected, start: Pairs, scales: Scales, kappas: Scales, closure: str
) -> Pairs:
    """The renormalised kernel at given order parameters, from K^0.

    Args:
        kappas: order parameters of the means, which only the closure "nested" uses.
    """
    depth, phi = scales.shape[0], system.activation
    variances = jnp.append(system.variances[1:], system.readout_variance)

    def nested(
        scales: list[Float[Array, ""]], kappas: list[Float[Array, ""]] | None = None
    ) -> Pairs:
        pairs = start
        for layer, (variance, scale) in enumerate(zip(variances, scales)):
            kernel = pairs.map(phi.two_point).scaled(scale)
            if kappas is not None and phi.parity != "odd":
                first, second = phi.mean(pairs.first), phi.mean(pairs.second)
                means = Pairs(first**2, jnp.outer(first, second), second**2).scaled(
                    kappas[layer] - scale
                )
                kernel = jax.tree.map(jnp.add, kernel, means)
            pairs = kernel.scaled(variance)
        return pairs

    one = jnp.ones(())
    if closure == "nested":
        return nested(list(scales), list(kappas))
    if closure == "common":
        return nested([one] * depth).scaled(jnp.prod(scales))

    def first_order(layers: int, fixed: list[Float[Array, ""]]) -> Pairs:
        """Kernel after the operator prod_{l < layers} (1 + (Q_l - 1) d/ds_l) has been applied to
        it. The layers above have the scales `fixed`."""
        if layers == 0:
            return nested(fixed)
        value, derivative = jax.jvp(
            lambda s: first_order(layers - 1, [s, *fixed]), (one,), (scales[layers - 1] - 1,)
        )
        return jax.tree.map(jnp.add, value, derivative)

    # The last layer only multiplies the kernel: 1 + (Q_L - 1) d/ds_L is Q_L.
    return first_order(depth - 1, [scales[-1]])


def kernels(system: FullyConnected, scales: Scales, kappas: Scales, closure: str) -> Kernels:
    """The renormalised kernel: on the training set, of the test points against the training set,
    and the variance at the test points.
    """
    train, test = (
        renormalised(system, pairs, scales, kappas, closure) for pairs in input_pairs(system)
    )
    return train.cross, test.cross, test.first


def prior_kernels(system: FullyConnected) -> Kernels:
    """The kernel of infinite width."""
    one = jnp.ones(system.depth)
    return kernels(system, one, one, "common")


def prior_basis(system: FullyConnected) -> Eigenbasis:
    """Eigenbasis of the kernel of infinite width on the training set."""
    return Eigenbasis.of(*prior_kernels(system), system.train[1])


def common_minima(system: FullyConnected) -> Minima:
    """All minima of the action in the closure "common", from which the searches in the other
    closures start. The cost is one eigendecomposition.
    """
    basis = prior_basis(system)
    return common_scale.minima(
        basis.eigenvalues, basis.power, jnp.asarray(system.temperature), system.widths
    )


class Action(eqx.Module):
    """The action of one output, F(Q, kappa) = sum_l N_l [ Q_l - Q_l/kappa_l - log kappa_l ] +
    constant + log det A + y^T A^{-1} y.

    The unknowns are log Q_1 .. log Q_L. If the means have order parameters of their own, log
    kappa_1 .. log kappa_L follow, and the solution is a saddle point of F. Otherwise kappa_l = Q_l,
    and the solution is a minimum of F = sum_l N_l (Q_l - log Q_l) + ...
    """

    system: FullyConnected
    start: Pairs
    closure: str = eqx.field(static=True)
    separate_means: bool = eqx.field(static=True)

    @classmethod
    def of(cls, system: FullyConnected, closure: str, separate_means: bool = False) -> "Action":
        return cls(system, input_pairs(system)[0], closure, separate_means)

    def split(self, unknowns: Float[Array, "unknown"]) -> tuple[Scales, Scales]:
        """The order parameters Q_l and kappa_l."""
        scales, kappas = jnp.split(unknowns, 2) if self.separate_means else (unknowns, unknowns)
        return jnp.exp(scales), jnp.exp(kappas)

    @property
    def constant(self) -> Float[Array, ""]:
        """Value of F at Q = kappa = 1 without data."""
        return jnp.zeros(()) if self.separate_means else jnp.sum(self.system.widths)

    def __call__(self, unknowns: Float[Array, "unknown"]) -> Float[Array, ""]:
        (scales, kappas), system = self.split(unknowns), self.system
        kernel = renormalised(system, self.start, scales, kappas, self.closure).cross
        prior = jnp.sum(system.widths * (scales - scales / kappas - jnp.log(kappas)))
        return (
            self.constant
            + prior
            + data_term(
                kernel + system.temperature * jnp.eye(kernel.shape[0]), system.train[1][:, 0]
            )
        )

    def gradient(
        self, unknowns: Float[Array, "unknown"], _: None = None
    ) -> Float[Array, "unknown"]:
        """Derivatives of F with respect to the unknowns, N_l (Q_l - 1) + .., divided by the
        smallest width."""
        return jax.grad(self)(unknowns) / jnp.min(self.system.widths)

    def minimum(self, start: Scales) -> Solved:
        """Minimum of F, divided by the smallest width, that is reached from `start`."""
        return newton_minimum(
            differentiated(lambda u: self(u) / jnp.min(self.system.widths)), start
        )


def finite_width_layers(system: FullyConnected, closure: str) -> RenormalisedNetwork:
    """The prediction of `finite_width` in the closures "nested" and "linear", for one output.

    The closure "nested" gives the mean of a non-odd activation order parameters of its own.
    """
    separate_means = closure == "nested" and system.activation.parity != "odd"
    action, start = (
        Action.of(system, closure, separate_means),
        jnp.log(common_minima(system).order_parameters[0]),
    )
    if separate_means:
        start, solver = (
            jax.lax.stop_gradient(jnp.tile(start, 2)),
            optimistix.Dogleg(rtol=1e-12, atol=1e-12),
        )
        root = optimistix.root_find(action.gradient, solver, start, max_steps=60, throw=False)
        found, steps = root.value, root.stats["num_steps"]
    else:
        minimum = action.minimum(start)
        found, steps = minimum.value, minimum.steps
    residual = jnp.max(jnp.abs(jax.lax.stop_gradient(action.gradient(found))))
    scales, kappas = action.split(found)
    value, (train, rows, diagonal) = action(found), kernels(system, scales, kappas, closure)
    (_, y), (_, test_y) = system.train, system.test
    fields = regression(
        train, rows[:, None], diagonal[:, None, None], y, test_y, system.temperature
    )
    return RenormalisedNetwork(
        **fields | {"converged": fields["converged"] & reached(residual) & jnp.isfinite(value)},
        order_parameters=scales[:, None, None, None, None],
        mean_scales=kappas[:, None, None, None, None],
        action=value,
        log_evidence=log_evidence(value, action.constant, y.size),
        residual=residual,
        steps=steps,
    )


ONE_OUTPUT = {"outputs": equal(1, why="targets have the shape (examples,), one output")}


@theory(needs=ONE_OUTPUT)
def branches(system: FullyConnected, *, closure: Closure = "common") -> Branches:
    r"""Stationary points of the effective action of a fully connected network with one output: its
    minima, and the maximum between neighbours.

    $$ F(Q) = \sum_l N_l (Q_l - \log Q_l) + \log\det(T + K^R) + y^T (T + K^R)^{-1} y $$

    with $N_l$ the `width`, T the `temperature` and $K^R$ the renormalised kernel at the order
    parameters $Q_l$. If there are two minima, training at fixed temperature depends on its initial
    state, and the posterior is concentrated at the lower one. The mean of a non-odd activation is
    part of the kernel here.

    Args:
        closure: how the order parameters enter the kernel: "common" (default), "nested" or
            "linear", see `finite_width`.

    Raises:
        ValueError: for several outputs.

    Accuracy: stationary to 1e-9. In the closure "common", and at depth one, all stationary points
    are found by a scan of the one unknown. In the other closures, the stationary points are found
    that Newton's method reaches from these points and from a scan along equal log Q_l.

    Source: derived here, from the action of Pacelli et al. (2023).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> np.isfinite(np.asarray(branches(system).action)).tolist()
    [True, False, False]
    """
    minima, closure = common_minima(system), "common" if system.depth == 1 else closure
    tops = _tops(system, minima)
    order, action, residual, found = (
        minima.order_parameters,
        minima.action,
        minima.residual,
        minima.found,
    )
    barrier = Action.of(system, closure)
    if closure != "common":
        order, action, residual, found = _refined(system, closure, minima)
        solver = optimistix.Dogleg(rtol=1e-12, atol=1e-12)

        def climb(start: Scales) -> Scales:
            return optimistix.root_find(
                barrier.gradient, solver, start, max_steps=60, throw=False
            ).value

        tops = jax.lax.map(climb, tops)
    slopes = jnp.max(jnp.abs(jax.lax.map(barrier.gradient, tops)), axis=1)
    # There is one barrier for each pair of neighbouring minima; it is kept if it is a stationary
    # point.
    there = reached(slopes) & (jnp.arange(BRANCHES - 1) < jnp.sum(found) - 1)
    heights = jax.lax.map(barrier, tops)
    return Branches(
        order_parameters=jnp.where(found[:, None], order, jnp.nan),
        action=jnp.where(found, action, jnp.nan),
        residual=jnp.where(found, residual, jnp.nan),
        barrier_order_parameters=jnp.where(there[:, None], jnp.exp(tops), jnp.nan),
        barrier_action=jnp.where(there, heights, jnp.nan),
        converged=jnp.any(found) & jnp.all(reached(residual) | ~found),
    )


def _tops(system: FullyConnected, minima: Minima) -> Float[Array, "barrier layer"]:
    """The values of log Q_l at the maximum between neighbouring minima of the closure `common`,
    where the slope falls through zero."""
    basis, widths = prior_basis(system), system.widths
    args = basis.eigenvalues, basis.power, system.temperature, widths
    ends = jnp.sort(jnp.where(minima.found, minima.log_scale, jnp.inf))

    def top(low: Float[Array, ""], high: Float[Array, ""]) -> Scales:
        usable = jnp.isfinite(high)
        low, high = jnp.where(usable, low, 0.0), jnp.where(usable, high, 1.0)
        margin = 1e-6 * (high - low)  # both ends are zeros of the slope themselves
        found = decreasing_root(common_scale.slope, low + margin, high - margin, args).value
        return jnp.log(common_scale.order_parameters(found, widths))

    return jax.vmap(top)(ends[:-1], ends[1:])


def _refined(
    system: FullyConnected, closure: str, minima: Minima
) -> tuple[Array, Array, Array, Array]:
    """Minima of the action in another closure: their Q_l, F and residuals, and a mask of the minima
    that exist. They are searched from the minima of "common" and from every minimum along equal log
    Q_l.
    """
    action = Action.of(system, closure)
    line = jnp.linspace(*_RANGE, _SCAN)[:, None] * jnp.ones(system.depth)
    values = jax.lax.map(action, line)
    (lowest,) = jnp.nonzero(
        (values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]), size=BRANCHES, fill_value=-1
    )
    starts = jnp.concatenate([jnp.log(minima.order_parameters), line[lowest + 1]])
    usable = jnp.concatenate([minima.found, lowest >= 0])
    starts = jnp.where(usable[:, None], starts, starts[0])
    found = jax.lax.map(lambda start: action.minimum(start).value, starts)
    actions = jax.lax.map(action, found)
    residuals = jnp.max(jnp.abs(jax.lax.map(action.gradient, found)), axis=1)
    order = jnp.argsort(actions)
    found, actions, residuals = found[order], actions[order], residuals[order]
    distances = jnp.max(jnp.abs(found[:, None] - found[None]), axis=-1)
    repeated = jnp.any(jnp.tril(distances < _SAME, -1), axis=1)
    places = jnp.nonzero(reached(residuals) & ~repeated, size=BRANCHES, fill_value=-1)[0]
    return jnp.exp(found[places]), actions[places], residuals[places], places >= 0
