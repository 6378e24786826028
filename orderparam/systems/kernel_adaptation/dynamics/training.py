"""Noisy training with weight decay, followed in time: gradient descent plus noise, whose equilibrium is the posterior.

With L = (1/2) sum_mu (f(x_mu) - y_mu)^2 and temperature T every layer obeys

    d theta = -(gamma theta + dL/d theta) ds + sqrt(2T) dB,   gamma_w = T d / weight_variance,   gamma_a = T N / readout_variance.

With the learning rate step / gamma of its layer every weight forgets its start in the same time: in units of the prior,
u <- u - step (u + (1/T) dL/du) + sqrt(2 step) xi. With one learning rate, step / gamma_a, the hidden weights are slower by
gamma_w / gamma_a = (d / weight_variance) / (N / readout_variance): in a wide network the read-out fits the training set on
features that have hardly moved yet. Time is step times the number of steps, one unit being the time in which the weight decay of
the read-out alone would act. The equilibrium does not depend on the learning rates.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian import hermite
from orderparam.sampling import sample
from orderparam.systems.kernel_adaptation.modes.observables import over
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import TEST_POINTS, draw_data, training_set
from orderparam.systems.kernel_adaptation.two_layers.experiment.posterior import TwoLayerPosterior, TwoLayerWeights
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

STARTS = ("prior", "informed")


class Snapshot(eqx.Module):
    """What is recorded of the network at one time."""

    output: Float[Array, "mode"]
    train_learnability: Float[Array, "mode"]
    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    spread: Float[Array, ""]
    specialised: Float[Array, ""]


class TrainedNetwork(Result):
    """One training run; arrays over `record` are at the times `time`.

    test_learnability:  f_k / y_k with f_k = E_x f h_k over the whole input distribution; NaN where the target has no h_k.
    train_learnability: sum f h_k / sum y h_k over the training set.
    train_error, test_error: mean of (f - y)^2 over the training set, and over 2000 fresh inputs.
    specialised:        number of neurons with |w . w_*| > boundary.
    output, spread:     f_k and d <rho^2>/weight_variance, averaged over the second half of the run: those of the posterior, once
                        the start is forgotten.
    inflation:          bound on the factor by which the step inflates the variance of any mode of the weights, 1/(1 - step A/2)
                        with A the largest curvature at the end. converged: it is below 1.2.
    """

    degree: Float[Array, "mode"]
    time: Float[Array, "record"]
    test_learnability: Float[Array, "record mode"]
    train_learnability: Float[Array, "record mode"]
    train_error: Float[Array, "record"]
    test_error: Float[Array, "record"]
    specialised: Float[Array, "record"]
    output: Float[Array, "mode"]
    spread: Float[Array, ""]
    inflation: Float[Array, ""]
    converged: Bool[Array, ""]


class _Recorder(eqx.Module):
    posterior: TwoLayerPosterior
    test_inputs: Float[Array, "test input"]
    test_targets: Float[Array, "test"]
    boundary: Float[Array, ""]

    def __call__(self, weights: TwoLayerWeights) -> Snapshot:
        posterior = self.posterior
        rho = posterior.layer.scale * weights.hidden[:, 0]
        train, test = (posterior.output(weights, x).astype(float) for x in (posterior.x, self.test_inputs))
        h = jnp.stack([hermite(k, posterior.x[:, 0]) for k in posterior.layer.degrees])
        return Snapshot(
            output=posterior.mode_outputs(weights.hidden, posterior.layer.amplitude * weights.readout),
            train_learnability=(h @ train) / (h @ posterior.y),
            train_error=jnp.mean((train - posterior.y) ** 2),
            test_error=jnp.mean((test - self.test_targets) ** 2),
            spread=jnp.mean(weights.hidden[:, 0] ** 2),
            specialised=jnp.sum(jnp.abs(rho) > self.boundary).astype(float),
        )


@experiment
def langevin_training(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    duration: float = 20.0,
    step: float = 0.004,
    records: int = 100,
    start: Literal["prior", "informed"] = "prior",
    boundary: float = 0.5,
    one_rate: bool = False,
) -> TrainedNetwork:
    """Langevin training on one random training set, recorded `records` times at equal intervals.

    one_rate: whether all weights have the same learning rate, as in plain gradient descent, and not one for each layer.

    start: "prior", or "informed", every neuron at w = +-w_* plus a prior draw across. The training set depends on the key alone
    and is that of `sampled_network`. Raises `ValueError` for a step at which training is unstable.
    """
    data_key, start_key, run_key = jax.random.split(key, 3)
    layer = system.hidden
    posterior = TwoLayerPosterior(layer, *training_set(system, key))
    fresh = draw_data(system, jax.random.fold_in(data_key, 1), TEST_POINTS)
    thin = max(1, round(duration / records / step))
    ratio = layer.dim / layer.weight_variance * layer.readout_variance / layer.width if one_rate else 1.0
    run = sample(
        posterior,
        posterior.starts(1, int(start == "informed"), start_key),
        jax.random.fold_in(run_key, STARTS.index(start)),
        method="langevin",
        step_size=step,
        warmup=0,
        samples=records,
        thin=thin,
        scale=TwoLayerWeights(jnp.sqrt(ratio), jnp.ones(())),
        observe=_Recorder(posterior, *fresh, jnp.asarray(boundary)),
    )
    path = jax.tree.map(lambda values: values[0], run.observables)
    late = slice(records // 2, None)
    return TrainedNetwork(
        degree=jnp.asarray(layer.degrees, float),
        time=step * thin * jnp.arange(1, records + 1),
        test_learnability=over(path.output, layer.y),
        train_learnability=path.train_learnability,
        train_error=path.train_error,
        test_error=path.test_error,
        specialised=path.specialised,
        output=jnp.mean(path.output[late], axis=0),
        spread=jnp.mean(path.spread[late]),
        inflation=run.variance_inflation[0],
        converged=run.variance_inflation[0] < 1.2,
    )
