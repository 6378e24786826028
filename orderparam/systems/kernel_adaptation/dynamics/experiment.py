"""Networks trained in time, and the pruning of a trained network."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian import hermite
from orderparam.observables.dimension import participation_ratio
from orderparam.sampling import sample
from orderparam.systems.kernel_adaptation.dynamics.model import Classifier
from orderparam.systems.kernel_adaptation.network import over
from orderparam.systems.kernel_adaptation.readers import each_rank
from orderparam.systems.kernel_adaptation.two_layers.experiment import (
    TEST_POINTS,
    TwoLayerPosterior,
    TwoLayerWeights,
    draw_data,
    training_set,
)
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

# ------------------------------------------------------------------------------------------------
# Training in time by gradient descent with weight decay and noise. The equilibrium of this dynamics
# is the posterior.
#
# With L = (1/2) sum_mu (f(x_mu) - y_mu)^2 and temperature T every layer obeys
#
#     d theta = -(gamma theta + dL/d theta) ds + sqrt(2T) dB,
#     gamma_w = T d / weight_variance,  gamma_a = T N / readout_variance.
#
# If every layer has its own learning rate step / gamma, all weights forget their initial values in
# the same time. In units of the prior a step is then u <- u - step (u + (1/T) dL/du) + sqrt(2 step)
# xi. If all weights have the learning rate step / gamma_a, the hidden weights are slower by gamma_w
# / gamma_a = (d / weight_variance) / (N / readout_variance). In a wide network the read-out then
# fits the training set with features that have hardly changed yet. Time is `step` times the number
# of steps. One unit of time is the relaxation time of the read-out under its weight decay alone.
# The equilibrium does not depend on the learning rates.

STARTS = ("prior", "informed")


class Snapshot(eqx.Module):
    """The observables of the network at one time."""

    output: Float[Array, "mode"]
    train_learnability: Float[Array, "mode"]
    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    spread: Float[Array, ""]
    specialised: Float[Array, ""]


class TrainedNetwork(Result):
    """One training run, recorded at equal intervals.

    Fields:
        degree: k of each mode.
        time: time of each record; one unit is the time in which the weight decay of the read-out
            alone would act.
        test_learnability: f_k / y_k with f_k = E_x f h_k over the whole input distribution; NaN
            where the target has no h_k.
        train_learnability: sum f h_k / sum y h_k over the training set.
        train_error: mean of (f - y)^2 over the training set.
        test_error: mean of (f - y)^2 over 2000 fresh inputs.
        specialised: number of neurons with |w . w_*| > boundary.
        output: f_k averaged over the second half of the run, which is that of the posterior once
            the initial state is forgotten.
        spread: d <rho^2>/weight_variance averaged over the second half of the run.
        inflation: bound on the factor by which the step inflates the variance of any mode of the
            weights, 1/(1 - step A/2) with A the largest curvature at the end.
        converged: whether `inflation` is below 1.2.
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
        train, test = (
            posterior.output(weights, x).astype(float) for x in (posterior.x, self.test_inputs)
        )
        h = jnp.stack([hermite(k, posterior.x[:, 0]) for k in posterior.layer.degrees])
        return Snapshot(
            output=posterior.mode_outputs(
                weights.hidden, posterior.layer.amplitude * weights.readout
            ),
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
    r"""Learning curve in time of a two-layer network that is trained by Langevin dynamics on one
    random training set.

    $$ d\theta = -\Big( \gamma \theta + \frac{\partial L}{\partial \theta} \Big) dt
       + \sqrt{2T}\, dB, \qquad \gamma_w = T d / v, \qquad \gamma_a = T N / s $$

    with $L = \frac12 \sum_\mu (f(x_\mu) - y_\mu)^2$, T the `temperature`, v the `weight_variance`
    and s the `readout_variance`; its equilibrium is the posterior of `TwoLayerNetwork`. In units of
    the prior a step is $u \leftarrow u - \epsilon (u + \nabla L / T) + \sqrt{2 \epsilon}\, \xi$
    with $\epsilon$ = `step`, and time is `step` times the number of steps. The training set depends
    on the key alone and is that of `sampled_network`.

    Args:
        duration: time at the end. Default 20.
        step: step size in units of time. Default 0.004.
        records: number of records at equal intervals. Default 100.
        start: "prior" (default), or "informed": every neuron starts at w = +-w_* plus a prior draw
            of the components orthogonal to w_*.
        boundary: |w . w_*| beyond which a neuron counts as specialised. Default 0.5.
        one_rate: whether all weights have the same learning rate, as in plain gradient descent,
            instead of one for each layer. Hidden weights are then slower by (d / v) / (N / s).
            Default False.

    Raises:
        ValueError: for a step size at which training is unstable.

    Accuracy: the finite step size increases variances by at most the factor `inflation`.

    Source: Rubin, Seroussi, Ringel (2024); Naveh et al. (2021).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> options = {"duration": 0.1, "step": 0.01, "records": 5}
    >>> langevin_training(network, jax.random.key(0), **options).time.shape
    (5,)
    """
    data_key, start_key, run_key = jax.random.split(key, 3)
    layer = system.hidden
    posterior = TwoLayerPosterior(layer, *training_set(system, key))
    fresh = draw_data(system, jax.random.fold_in(data_key, 1), TEST_POINTS)
    thin = max(1, round(duration / records / step))
    ratio = (
        layer.dim / layer.weight_variance * layer.readout_variance / layer.width
        if one_rate
        else 1.0
    )
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


# ------------------------------------------------------------------------------------------------
# A trained classifier is pruned in the eigenbasis of its latent kernel, to find how many directions
# of the hidden layer contain what it has learned.
#
# A network f = A phi(h(x)) with two hidden layers is trained by gradient descent on the loss |f -
# y|^2 chi / (2T), with weight decay towards the initial weights u_0, |u - u_0|^2 / 2 in units of
# the prior; the read-out starts at zero. Weights that no example determines keep their random
# values, as they do at the equilibrium of noisy training. With the activations Phi (examples,
# units) of the last hidden layer on the training set and Phi^T Phi / examples = U diag(eigenvalues)
# U^T, pruning to rank k is
#
#     Phi -> Phi U_k U_k^T,   folded into the read-out A -> A U_k U_k^T, without retraining.
#
# Seroussi, Naveh, Ringel 2023: feature learning changes the latent kernel in few directions, so
# that most of the other directions can be removed.


class ClassifierWeights(NamedTuple):
    """Weights in units of the prior."""

    first: Float[Array, "unit input"]
    second: Float[Array, "unit unit"]
    readout: Float[Array, "class unit"]


class Pruned(Result):
    """Accuracies of one trained classifier that is pruned to several ranks.

    Fields:
        rank: number of directions kept.
        accuracy: fraction of the test set classified correctly with the `rank` leading directions
            of the latent kernel kept.
        random_accuracy: fraction of the test set classified correctly with `rank` random
            orthonormal directions kept.
        magnitude_accuracy: fraction of the test set classified correctly with the `rank` units of
            the largest read-out weights kept and all other units switched off.
        kernel_accuracy: fraction of the test set classified correctly by the Gaussian process that
            reads the leading directions.
        learnability: mean . y / y . y at the test points of this Gaussian process.
        fresh_learnability: the same for a Gaussian process on images that have not trained the
            network: on as many examples as there are in the training set, or half of the test set
            if that is less, taken from one half of the test set and tested on the other half.
        predicted_learnability: theory of `fresh_learnability`, averaged over training sets.
        trace: fraction of the trace of the latent kernel on the kept directions.
        full_accuracy: accuracy of the whole network on the test set.
        train_accuracy: accuracy of the whole network on its training set.
        eigenvalues: eigenvalues of the latent kernel in decreasing order, divided by their sum.
        participation: participation ratio (sum eigenvalues)^2 / sum eigenvalues^2, the effective
            number of directions.
        moved: |change of the hidden weights| / |hidden weights at the start|, small in lazy
            training.
        converged: whether the norm of the gradient is below a hundredth of its first value.
    """

    rank: Float[Array, "kept"]
    accuracy: Float[Array, "kept"]
    random_accuracy: Float[Array, "kept"]
    magnitude_accuracy: Float[Array, "kept"]
    kernel_accuracy: Float[Array, "kept"]
    learnability: Float[Array, "kept"]
    fresh_learnability: Float[Array, "kept"]
    predicted_learnability: Float[Array, "kept"]
    trace: Float[Array, "kept"]
    full_accuracy: Float[Array, ""]
    train_accuracy: Float[Array, ""]
    eigenvalues: Float[Array, "direction"]
    participation: Float[Array, ""]
    moved: Float[Array, ""]
    converged: Bool[Array, ""]


RANKS = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 24, 32, 64, 128)


@experiment
def pruned_classifier(
    system: Classifier,
    key: PRNGKeyArray,
    *,
    steps: int = 1000,
    learning_rate: float = 0.02,
    train_hidden: bool = True,
) -> Pruned:
    r"""Test accuracy of a trained classifier whose last hidden layer is projected on the leading
    directions of its latent kernel.

    With $\Phi$ the activations (example, unit) of the last hidden layer on the training set and
    $\Phi^T \Phi / n = U\, \mathrm{diag}(\mathrm{eigenvalues})\, U^T$, pruning to rank k replaces

    $$ \Phi \rightarrow \Phi\, U_k U_k^T $$

    without retraining. Adam minimises the loss $|f - y|^2 \chi / (2T)$ on the whole training set,
    with weight decay towards the initial weights and a learning rate that falls to zero as a
    cosine; the read-out starts at zero. Beside it stands the Gaussian process that reads the same
    directions, with the kernel $\phi^T U_k U_k^T \phi' / N$ and the `temperature`, and the theory
    of what it learns from images that have not trained the network, which
    `pruned_pooled_classifier` describes.

    Args:
        steps: number of steps of Adam. Default 1000.
        learning_rate: initial learning rate. Default 0.02.
        train_hidden: whether the hidden weights are trained. False trains the read-out alone, on
            the features of the initial random network (a fixed kernel). Default True.

    Source: Seroussi, Naveh, Ringel (2023); Canatar, Bordelon, Pehlevan (2021) for the share that is
    learned.

    >>> import jax
    >>> data = Classifier(np.eye(3), np.eye(3), np.eye(3), np.eye(3), width=8)
    >>> pruned_classifier(data, jax.random.key(0), steps=5).rank.tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    """
    draw_key, random_key = jax.random.split(key)
    width = system.size("width")
    first_key, second_key = jax.random.split(draw_key)
    start = ClassifierWeights(
        jax.random.normal(first_key, (width, system.inputs.shape[1]), jnp.float32),
        jax.random.normal(second_key, (width, width), jnp.float32),
        jnp.zeros((system.targets.shape[1], width), jnp.float32),
    )
    end, gradients = _train(system, start, steps, learning_rate, train_hidden)
    ranks = (*(k for k in RANKS if k < width), width)
    train, test = (latent(end, jnp.asarray(x)) for x in (system.inputs, system.test_inputs))
    values, vectors = jnp.linalg.eigh(train.T @ train / train.shape[0])
    values, vectors = values[::-1], vectors[:, ::-1]
    # Two controls keep as many random directions, or as many single units.
    random = jnp.linalg.qr(jax.random.normal(random_key, (width, width)))[0]
    largest = jnp.eye(width)[:, jnp.argsort(-jnp.sum(end.readout**2, axis=0))]
    labels = jnp.argmax(system.test_targets, axis=1)

    def accuracies(basis: Array) -> Array:
        kept = [
            jnp.argmax(test @ basis[:, :k] @ (basis[:, :k].T @ end.readout.T), axis=1) == labels
            for k in ranks
        ]
        return jnp.mean(jnp.stack(kept), axis=1)

    masks = (jnp.arange(width) < jnp.asarray(ranks)[:, None]).astype(float)
    kernel_accuracy, learnability, fresh, predicted = _read(
        system, train @ vectors, test @ vectors, masks
    )
    fitted = jnp.argmax(train @ end.readout.T, axis=1) == jnp.argmax(system.targets, axis=1)
    hidden = [(b - a, a) for a, b in zip(start[:2], end[:2])]
    moved = jnp.sqrt(
        sum(jnp.sum(change**2) for change, _ in hidden) / sum(jnp.sum(a**2) for _, a in hidden)
    )
    return Pruned(
        rank=jnp.asarray(ranks, float),
        accuracy=accuracies(vectors),
        random_accuracy=accuracies(random),
        magnitude_accuracy=accuracies(largest),
        kernel_accuracy=kernel_accuracy,
        learnability=learnability,
        fresh_learnability=fresh,
        predicted_learnability=predicted,
        trace=jnp.cumsum(values)[jnp.asarray(ranks) - 1] / jnp.sum(values),
        full_accuracy=jnp.mean(jnp.argmax(test @ end.readout.T, axis=1) == labels),
        train_accuracy=jnp.mean(fitted),
        eigenvalues=values / jnp.sum(values),
        participation=participation_ratio(values),
        moved=moved,
        converged=gradients[1] < 1e-2 * gradients[0],
    )


@eqx.filter_jit
def _read(
    system: Classifier, train: Array, test: Array, masks: Float[Array, "kept unit"]
) -> tuple[Array, Array, Array, Array]:
    """See `each_rank`, for features along the eigenvectors of the latent kernel."""
    return each_rank(
        (train, system.targets),
        (test, system.test_targets),
        masks,
        masks.shape[1] ** -0.5,
        system.temperature,
    )


def latent(
    layers: ClassifierWeights, x: Float[Array, "example input"]
) -> Float[Array, "example unit"]:
    """The activations of the last hidden layer."""
    first, second = (weights.astype(x.dtype) for weights in layers[:2])
    h = jax.nn.relu(x @ first.T / x.shape[1] ** 0.5)
    return jax.nn.relu(h @ second.T * (2 / second.shape[1]) ** 0.5)


@eqx.filter_jit
def _train(
    system: Classifier, start: ClassifierWeights, steps: int, rate: float, train_hidden: bool
) -> tuple[ClassifierWeights, Float[Array, "2"]]:
    """The trained weights, and the norms of the gradient at the start and at the end."""
    single = (system.inputs, system.targets, system.chi, system.temperature)
    x, y, chi, temperature = (jnp.asarray(numbers, jnp.float32) for numbers in single)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def energy(layers: ClassifierWeights) -> Array:
        phi = latent(layers, x)
        f = phi @ layers.readout.T / jnp.sqrt(chi * phi.shape[1])
        # Weights decay towards their initial values, so that weights that no example determines
        # keep their random values.
        changed = sum(jnp.sum((b - a) ** 2) for a, b in zip(start, layers)) / 2
        return jnp.sum((f - y) ** 2) * chi / (2 * temperature) + changed

    def slope(layers: ClassifierWeights) -> ClassifierWeights:
        found = jax.grad(energy)(layers)
        still = jax.tree.map(jnp.zeros_like, found)
        return found if train_hidden else still._replace(readout=found.readout)

    def body(
        carry: tuple[ClassifierWeights, optax.OptState], _: None
    ) -> tuple[tuple[ClassifierWeights, optax.OptState], None]:
        layers, state = carry
        updates, state = optimiser.update(slope(layers), state)
        return (optax.apply_updates(layers, updates), state), None

    (end, _), _ = jax.lax.scan(body, (start, optimiser.init(start)), length=steps)
    slopes = [jax.tree.leaves(slope(layers)) for layers in (start, end)]
    norms = jnp.sqrt(jnp.stack([sum(jnp.sum(leaf**2) for leaf in leaves) for leaves in slopes]))
    return jax.tree.map(lambda weights: weights.astype(float), end), norms.astype(float)
