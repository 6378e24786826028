r"""Linear networks of any depth on a given training set, exactly: what the theories of adapting
layers are measured against.

With the effective read-out f = r . x the units of every layer are constrained by the data along one
direction only, and the kernel of the output is multiplied by one random number p = q_1 .. q_L (see
`kernels.random_scale`). Given p, r is that of a Gaussian process of kernel p K. With r and the
weights of the first layer in units of their priors, and p_l = q_l .. q_L,

    <u u^T> = (1 - 1/N_1) 1 + (1/N_1) <r r^T / p>,
    <H_l>/v_l = (1 - 1/N_l) <H_(l-1)> / v_(l-1) + (1/N_l) <f f^T / p_l> / v_f,

where v_l is the prior scale of the kernel of layer l, v_f that of the output, and H_0 / v_0 the
kernel of the inputs. In the mean-field scaling, T and read-out variance proportional to 1/N at
N -> infinity, p and f are sharp, and the averages are those of `deep_gaussian_layers`: for linear
units the minimum over the pre-activations of a layer multiplies its kernel on the training set by
q_l along one direction, so that the minimum over all layers is that of

    sum_l N_l (q_l - log q_l) + y^T (T + q_1 .. q_L K)^{-1} y.

At fixed T and read-out variance both agree in the kernels of all layers to the order 1/N, and the
predictions differ at this order by the fluctuations of p (derived here).
"""

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import equal
from orderparam.core.verb import theory
from orderparam.kernels.common_scale import Eigenbasis
from orderparam.kernels.random_scale import AtScale, ScaleDensity
from orderparam.systems.kernel_adaptation.deep.model import DeepNetworkOnData
from orderparam.systems.kernel_adaptation.on_data.model import OnTestSet, on_test_set


class LinearNetworkOnData(OnTestSet):
    """Posterior averages of a linear network on its data.

    Fields:
        train_mean: posterior mean of f at the training points.
        train_learnability: train_mean . y / y . y.
        on_target: y^T H_l y / y . y of the layers l = 2..L, with H_l the posterior mean of the
            second moments of their pre-activations over the units.
        scale: posterior mean of p, the factor of the output's kernel.
        converged: whether all numbers are finite.
    """

    train_mean: Float[Array, "train"]
    train_learnability: Float[Array, ""]
    on_target: Float[Array, "layer"]
    scale: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(needs={"activation.name": equal("linear")})
def exact_linear_network(system: DeepNetworkOnData) -> LinearNetworkOnData:
    r"""Posterior averages of a linear network of any depth: exact at every width.

    $$ p(p \mid y) \propto p(p)\, N(y; 0, T + p K), \qquad p = q_1 q_2 \dots q_L, \qquad
       \frac dv \Sigma = 1 + \frac{1}{N_1} \Big\langle \frac{r r^T}{p} - 1 \Big\rangle $$

    with $N_l q_l$ the squared length of $N_l$ standard normals at the prior, $N_l$ the `widths`,
    K the kernel of the infinitely wide network, T the `temperature`, v the `weight_variance`,
    $\Sigma$ the covariance of the input weights and f = r . x in units of the prior. The layers
    above follow in the same way.

    Raises:
        ValueError: for units that are not linear.

    Accuracy: the integral over log p uses the trapezoidal rule with 1025 nodes, centred at the
    saddle point; 1e-8.

    Source: Li, Sompolinsky (2021) at the saddle point; Hanin, Zlokapa (2023) for the evidence;
    averages of the layers derived here.

    >>> from orderparam.systems.kernel_adaptation import DeepNetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = DeepNetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1, activation="linear")
    >>> round(float(exact_linear_network(data).train_learnability), 5)
    0.96504
    """
    x, other, y = system.inputs, system.test_inputs, system.targets
    dim, depth = x.shape[1], system.depth
    top = system.readout_variance * system.hidden_variance ** (depth - 1)
    unit = jnp.sqrt(top * system.weight_variance / dim)  # f = unit * r . x
    basis = Eigenbasis.of(
        unit**2 * x @ x.T, unit**2 * other @ x.T, unit**2 * jnp.sum(other**2, axis=1), y[:, None]
    )
    temperature, widths = jnp.asarray(system.temperature), system.widths
    density = ScaleDensity.of(basis, temperature, widths)
    given = AtScale.of(jnp.exp(density.log_scale), basis, temperature)
    plain = density.log_prior(jnp.zeros(depth)) + given.log_likelihood
    total = logsumexp(plain)
    weights = jnp.exp(plain - total)
    residuals = weights @ (temperature * given.targets / given.spectrum)

    # <r r^T / p>: r has the mean p R z / (T + p k) and the covariance p - p^2 R R^T / (T + p k),
    # with R = unit X^T U and z = U^T y
    rotated = unit * x.T @ basis.vectors
    duals = given.targets / given.spectrum
    mean_square = duals.T @ ((weights * given.scales)[:, None] * duals)
    taken = jnp.diag((weights * given.scales) @ (1 / given.spectrum))
    change = rotated @ (mean_square - taken) @ rotated.T / widths[0]

    # y^T H_l y of the layers, in units of the output's kernel over the prior variances above
    above = jnp.triu(jnp.ones((depth, depth)))
    inverse = jnp.stack(
        [jnp.exp(density.log_prior(-row) + given.log_likelihood - total) for row in above]
    )
    along = inverse @ given.train_squares[0]
    reached, found = basis.eigenvalues @ basis.power, []
    for width, square in zip(widths, along):
        reached = (1 - 1 / width) * reached + square / width
        found.append(reached)
    scales = system.weight_variance * system.hidden_variance ** jnp.arange(depth)
    on_target = jnp.stack(found) * scales / (unit**2 * dim) / (y @ y)

    train_mean = y - basis.vectors @ residuals
    mean = weights @ given.means
    return LinearNetworkOnData(
        **on_test_set(system, mean, jnp.eye(dim) + change),
        train_mean=train_mean,
        train_learnability=train_mean @ y / (y @ y),
        on_target=on_target[1:],
        scale=weights @ given.scales,
        converged=jnp.isfinite(total) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(change)),
    )
