"""Kernels renormalised by one number: the effective action in the eigenbasis of the training
kernel, with all its minima.

Where the kernel enters only through p K, p = Q_1 Q_2 .. Q_L, the effective action of the layers'
order parameters is

    F(Q) = sum_l N_l (Q_l - log Q_l) + log det(T + p K) + y^T (T + p K)^{-1} y,
    p(Q) ~ exp(-F/2)

(one hidden layer: Pacelli et al. 2023; linear networks of any depth: Li and Sompolinsky 2021). At a
stationary point N_l (Q_l - 1) = c is the same for every layer, so that one unknown is left whatever
the depth. With K = U diag(k) U^T, z = U^T y,

    c + sum_i p k_i / (T + p k_i) - sum_i z_i^2 p k_i / (T + p k_i)^2 = 0.

Without the log det, which is the part of the fluctuations of the output ("tree" in the literature;
their relative weight vanishes in the mean-field scaling), the sum over shares p k / (T + p k) is
omitted.

One eigendecomposition serves every width, temperature and read-out variance: each further point
costs O(P).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.solve.root import decreasing_root

# Number of values of log Q between whose neighbours stationary points are searched. Two minima
# closer than one cell of the grid (about 0.1 in log Q) count as one, because the posterior is wider
# than that.
_GRID = 193
BRANCHES = 3


class Eigenbasis(eqx.Module):
    """A training kernel K = U diag(eigenvalues) U^T, with targets z = U^T y and test rows k U
    rotated into its basis."""

    eigenvalues: Float[Array, "train"]
    vectors: Float[Array, "train train"]
    targets: Float[Array, "train *output"]
    rows: Float[Array, "test train"]
    diagonal: Float[Array, "test"]

    @classmethod
    def of(
        cls,
        kernel: Float[Array, "train train"],
        rows: Float[Array, "test train"],
        diagonal: Float[Array, "test"],
        targets: Float[Array, "train *output"],
    ) -> "Eigenbasis":
        """One eigendecomposition, O(P^3), of a symmetric kernel. Eigenvalues that rounding made
        negative become zero."""
        # LAPACK stores columns one after the other, which is how the rows of the kernel lie in
        # memory: of its transpose, which is equal, no copy in another order is made.
        vectors, eigenvalues = jax.lax.linalg.eigh(kernel.T, symmetrize_input=False)
        return cls(
            jnp.maximum(eigenvalues, 0.0), vectors, vectors.T @ targets, rows @ vectors, diagonal
        )

    @property
    def power(self) -> Float[Array, "train"]:
        """z_i^2, summed over the outputs."""
        return self.targets**2 if self.targets.ndim == 1 else jnp.sum(self.targets**2, axis=1)


class Minima(eqx.Module):
    """Minima of the action in increasing order of the action; unused entries have an infinite
    action.

    log_scale: log Q of the narrowest layer. order_parameters: Q_1 .. Q_L. residual: |dF / d log p|
    / N, N the smallest width.
    """

    log_scale: Float[Array, "branch"]
    order_parameters: Float[Array, "branch layer"]
    action: Float[Array, "branch"]
    residual: Float[Array, "branch"]
    found: Bool[Array, "branch"]


def order_parameters(
    log_scale: Float[Array, ""], widths: Float[Array, "layer"]
) -> Float[Array, "layer"]:
    """The order parameters Q_l = 1 + c / N_l with c = N (Q - 1), where Q is the order parameter of
    the narrowest layer, of width N."""
    return 1 + jnp.expm1(log_scale) * jnp.min(widths) / widths


def action(
    parameters: Float[Array, "layer"],
    widths: Float[Array, "layer"],
    eigenvalues: Float[Array, "train"],
    power: Float[Array, "train"],
    temperature: Float[Array, ""],
    fluctuations: bool = True,
) -> Float[Array, ""]:
    """The effective action F(Q)."""
    spectrum = temperature + jnp.prod(parameters) * eigenvalues
    fit = jnp.sum(power / spectrum) + (jnp.sum(jnp.log(spectrum)) if fluctuations else 0.0)
    return jnp.sum(widths * (parameters - jnp.log(parameters))) + fit


def slope(
    log_scale: Float[Array, ""], args: tuple[Array, Array, Array, Array], fluctuations: bool = True
) -> Float[Array, ""]:
    """The slope (dF / d log p) / N along the line of stationary Q at given p."""
    eigenvalues, power, temperature, widths = args
    scaled = jnp.prod(order_parameters(log_scale, widths)) * eigenvalues
    inverse = 1 / (temperature + scaled)
    terms = scaled * inverse * (float(fluctuations) - power * inverse)
    # As a product with ones the sum needs no array of all terms, which a grid of scales for many
    # widths makes so large that allocating it takes longer than everything else.
    return jnp.expm1(log_scale) + terms @ jnp.ones_like(terms) / jnp.min(widths)


def minima(
    eigenvalues: Float[Array, "train"],
    power: Float[Array, "train"],
    temperature: Float[Array, ""],
    widths: Float[Array, "layer"],
    fluctuations: bool = True,
) -> Minima:
    """All minima of F, by a scan of log Q over the range where they can lie, and Newton's method
    inside each bracket.

    fluctuations: True if F includes the log det.

    At a minimum c <= sum_i z_i^2 min(1/(4T), 1/k_i) from above (p > 1) and p sum_i k_i / T > N/2
    from below.
    """
    temperature = jnp.asarray(temperature, float)
    args = (eigenvalues, power, temperature, widths)
    narrowest, top = jnp.min(widths), jnp.max(eigenvalues)
    noise = jnp.maximum(temperature, 1e-14 * top)
    strongest = jnp.sum(power * jnp.minimum(1 / (4 * noise), 1 / jnp.maximum(eigenvalues, 1e-300)))
    upper = jnp.log1p(strongest / narrowest) + 0.1
    lower = (
        jnp.minimum(
            jnp.log(narrowest * noise / (2 * jnp.sum(eigenvalues) + narrowest * noise)), 0.0
        )
        - 1.0
    )
    grid = jax.lax.stop_gradient(lower + (upper - lower) * jnp.linspace(0.0, 1.0, _GRID))
    signs = jax.vmap(lambda t: slope(t, args, fluctuations))(grid) >= 0
    (cell,) = jnp.nonzero(~signs[:-1] & signs[1:], size=BRANCHES, fill_value=-1)
    found = cell >= 0

    def refine(cell: Array) -> tuple[Array, Array]:
        root = decreasing_root(
            lambda t, args: -slope(t, args, fluctuations), grid[cell], grid[cell + 1], args
        )
        return root.value, root.residual

    # An unused entry repeats the first bracket: without a change of sign a search never ends early.
    log_scale, residual = jax.vmap(refine)(jnp.where(found, cell, jnp.maximum(cell[0], 0)))
    parameters = jax.vmap(lambda t: order_parameters(t, widths))(log_scale)
    values = jax.vmap(lambda q: action(q, widths, eigenvalues, power, temperature, fluctuations))(
        parameters
    )
    values = jnp.where(found, values, jnp.inf)
    order = jnp.argsort(values)
    return jax.tree.map(lambda x: x[order], Minima(log_scale, parameters, values, residual, found))
