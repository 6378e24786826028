"""Theory of a read-out on one given first layer."""

from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from orderparam.core.system import parameter, part, structure
from orderparam.core.verb import theory
from orderparam.gaussian import Activation, activation_names
from orderparam.gaussian import activation as find_activation
from orderparam.losses import Labels, PenalisedRisk, Penalty, RealLabels
from orderparam.systems.one_step.saddle import Bulk, Pull, data, moments, solve
from orderparam.systems.one_step.theory import ReadoutCurve, curve

# Errors of the read-out for a given first layer, without an average over layers and without an
# assumption about the bulk.
#
# Rows W (p x d) with u_j = w_j.v along a direction v of the inputs: r = mean u_j, h_j = u_j - r,
# the rest of the row W' = W - u v^T, c its root mean square norm, e_j = |w_j'| less its mean, and
# q_j = w_j'.t with t the teacher's direction orthogonal to v. With x_i the eigenvalues of
# W' W'^T/c^2, hh_i, ee_i and qq_i the components of h/c, e and q/c there, zh and eh the pulls of
# `saddle` for the functions phi = k mu_1 and nu, D_i = L + M x_i and
# A_i = (zh hh_i + eh ee_i + ph qq_i)/D_i,
#
#     V1 = (1/p) sum x/D      zeta = sum hh A      q1 = (1/p) sum (qh1 x + qh2) x/D^2 + sum x A^2
#     V2 = (1/p) sum 1/D      psi = sum qq A       q2 = (1/p) sum (qh1 x + qh2)/D^2 + sum A^2
#
# Together with sum ee A, the weight of the norms, these are the response of the layer to the
# averages over the data in `saddle`. One eigendecomposition serves every n, ridge and loss. The
# spreads h of the spikes and e of the norms are treated to first order, and h must be small
# compared with c. For an odd activation a neuron may change its sign together with its weight in
# the read-out, so that all u_j can be made non-negative. For other activations this theory does not
# hold if spikes have different signs.

WIDEST = 0.5  # largest standard deviation of the spikes, in units of the bulk's norm


class LayerModes(NamedTuple):
    """Modes of a trained layer.

    Fields:
        eigenvalues: eigenvalues x_i of W' W'^T/c^2.
        along_spike: components hh_i of the spread of the spikes.
        along_norm: components ee_i of the spread of the norms.
        along_teacher: components qq_i of the teacher.
    """

    eigenvalues: Float[Array, "neuron"]
    along_spike: Float[Array, "neuron"]
    along_norm: Float[Array, "neuron"]
    along_teacher: Float[Array, "neuron"]


class TrainedLayer(PenalisedRisk):
    """A first layer that has been trained, and the training of a read-out on it. Build it with
    `TrainedLayer.from_weights`.

    spike_overlap = v.theta, spike = r, bulk_norm = c, modes: see the comment above in the module.
    """

    n_train: float = parameter("training examples of the read-out; need not be an integer", above=0)
    spike_overlap: float = parameter("overlap of the spike with the teacher", minimum=-1, maximum=1)
    spike: float = parameter("mean projection of the rows on the spike")
    bulk_norm: float = parameter("root mean square norm of the rows without it", above=0)
    modes: LayerModes = part("the modes of the rows, and the projections on them")
    activation: Activation = structure(
        "nonlinearity",
        convert=find_activation,
        choices=activation_names,
        default="tanh",
        kw_only=True,
    )

    @property
    def examples(self) -> Any:
        return self.n_train

    @classmethod
    def from_weights(
        cls,
        weights: Num[ArrayLike, "neuron input"],
        spike: Num[ArrayLike, "input"],
        teacher: Num[ArrayLike, "input"],
        n_train: Any,
        ridge: Any,
        activation: Any = "tanh",
        labels: Labels | None = None,
        loss: Any = "square",
        penalty: Penalty = "sum",
    ) -> Self:
        """Trained layer made of weights (p, d) that act on standard normal inputs, of the direction
        v of the spike and of the direction theta of the teacher. Both directions have d entries and
        any length.

        v is the direction along which all rows have a common component. After one step it is the
        sum of y_i x_i over the batch; otherwise the mean row may be used.

        Raises:
            ValueError: for arrays that do not fit or are not finite, and for spikes whose standard
                deviation is more than half of the bulk's norm.
        """
        rows, v, theta = (np.asarray(part, np.float64) for part in (weights, spike, teacher))
        if (
            rows.ndim != 2
            or rows.size == 0
            or v.shape != rows.shape[1:]
            or theta.shape != rows.shape[1:]
        ):
            raise ValueError(
                f"weights has shape {rows.shape}, spike {v.shape} and teacher {theta.shape}: must "
                "be (p, d), (d,) and (d,)"
            )
        if (
            not all(np.isfinite(part).all() for part in (rows, v, theta))
            or not v.any()
            or not theta.any()
        ):
            raise ValueError(
                "weights, spike and teacher must be finite numbers, and the directions not zero"
            )
        nonlinearity = find_activation(activation)
        if nonlinearity.parity == "odd":
            rows = rows * np.where(rows @ v < 0, -1.0, 1.0)[:, None]
        overlap, strength, norm, modes = (
            jax.tree.map(np.asarray, part) for part in _decompose(rows, v, theta)
        )
        spread = float(np.linalg.norm(modes.along_spike) / np.sqrt(len(rows)))
        if spread > WIDEST:
            raise ValueError(
                f"weights: their projections on the spike are spread by {spread:.2g} times the "
                f"norm of the rest: must be at most {WIDEST} (see the module)"
            )
        numbers = (float(np.clip(overlap, -1, 1)), float(strength), float(norm))
        return cls(
            n_train,
            *numbers,
            modes,
            ridge=ridge,
            activation=nonlinearity,
            labels=labels or RealLabels(),
            loss=loss,
            penalty=penalty,
        )


@jax.jit
def _decompose(
    rows: Float[Array, "neuron input"], spike: Float[Array, "input"], teacher: Float[Array, "input"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], LayerModes]:
    """The overlap v.theta, the mean spike r, the bulk norm c, and the modes."""
    v, theta = spike / jnp.linalg.norm(spike), teacher / jnp.linalg.norm(teacher)
    overlap = v @ theta
    along = rows @ v
    bulk = rows - along[:, None] * v
    norms = jnp.linalg.norm(bulk, axis=1)
    norm = jnp.sqrt(jnp.mean(norms**2))
    rest = theta - overlap * v
    direction = rest / jnp.maximum(jnp.linalg.norm(rest), 1e-30)
    values, vectors = jnp.linalg.eigh(bulk @ bulk.T / norm**2)
    spreads = (along - jnp.mean(along)) / norm, norms - jnp.mean(norms), bulk @ direction / norm
    projections = (vectors.T @ part for part in spreads)
    modes = LayerModes(jnp.maximum(values, 0.0), *projections)
    return overlap, jnp.mean(along), norm, modes


@theory
def given_layer(system: TrainedLayer) -> ReadoutCurve:
    r"""Errors and order parameters of the read-out on one given first layer, for large p and n.

    With $x_i$ the eigenvalues of $W' W'^T / c^2$ ($W'$ the rows without their part along $v$),
    $h_i$, $e_i$, $r_i$ the components of the spikes' spread over $c$, of the spread of the norms
    and of $W' t$ over $c$, $D_i = L + M x_i$ and $A_i = (\hat\zeta h_i + \hat\nu e_i + \hat\psi
    r_i) / D_i$, where $\hat\zeta$ is that of `spiked_asymptotics` with $\varphi = k \mu_1$ and
    $\hat\nu$ with $E[z \sigma'(uk + cz)]$ in its place, the layer responds with

    $$ V_1 = \frac1p \sum_i \frac{x_i}{D_i} , \quad V_2 = \frac1p \sum_i \frac{1}{D_i} , \quad
       \zeta = \sum_i h_i A_i , \quad \psi = \sum_i r_i A_i , $$

    $$ q_1 = \frac1p \sum_i \frac{(\hat q_1 x_i + \hat q_2)\, x_i}{D_i^2} + \sum_i x_i A_i^2 , $$

    and $q_2$ without the factor $x_i$. There is one group of neurons, and no average over layers.

    Accuracy: exact for large p and n, to first order in the spreads of spikes and norms.

    Cost: one eigendecomposition of the layer, which serves all n, ridges and losses.

    Source: derived here; the averages over the data are those of Cui et al. (2024).

    >>> rows = np.random.default_rng(0).standard_normal((60, 50)) / 7 + 0.1
    >>> layer = TrainedLayer.from_weights(rows, np.ones(50), np.ones(50), n_train=100, ridge=0.1)
    >>> round(float(given_layer(layer).test_error), 5)
    0.00912
    """
    spike, norm, modes = jnp.asarray(system.spike), jnp.asarray(system.bulk_norm), system.modes
    load = system.n_train / modes.eigenvalues.size
    problem = data(
        system.loss,
        system.labels,
        system.spike_overlap,
        load,
        system.summed_ridge,
        lambda k: moments(system.activation, spike * k[None], norm),
        lambda k, at_k: jnp.concatenate([k * at_k.linear, at_k.by_norm]),
    )
    found = solve(problem, layer_answer, jnp.ones(1), modes)
    return curve(problem, found, system.labels, system.spike_overlap, spike[None], norm[None])


def layer_answer(asked: Pull, before: Bulk, modes: LayerModes) -> Bulk:
    """Response of the layer, as sums over its modes. In these sums zh and eh have the values that
    belong to the new zeta and to the new weight of the norms."""
    x, teacher = modes.eigenvalues, modes.along_teacher
    along = jnp.stack([modes.along_spike, modes.along_norm])
    inverse = 1 / (asked.penalty[0] + asked.stiffness[0, 0] * x)
    own, mixed = (along * inverse) @ along.T, (along * inverse) @ teacher
    bend, pull = asked.spike_stiffness, asked.teacher[0]
    spike = jnp.linalg.solve(
        jnp.eye(2) + own @ bend, own @ (asked.spike + bend @ before.spike) + mixed * pull
    )
    spike_pull = asked.spike + bend @ (before.spike - spike)
    amplitude = (spike_pull @ along + pull * teacher) * inverse
    power = (asked.power[0, 0] * x + asked.rest_power[0]) * inverse**2
    return Bulk(
        response=jnp.mean(x * inverse)[None, None],
        rest_response=jnp.mean(inverse)[None],
        spike=spike,
        teacher=jnp.sum(teacher * amplitude)[None],
        power=(jnp.mean(power * x) + jnp.sum(x * amplitude**2))[None, None],
        rest_power=(jnp.mean(power) + jnp.sum(amplitude**2))[None],
    )
