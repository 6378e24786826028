"""Sampling against distributions whose moments are known, and against itself: seeds, restarts,
separate modes."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderparam.sampling import doubled, estimate, sample, variance_inflation

# A Gaussian over a pytree: curvatures 1, 4, 10 along axes that are no coordinate axes.
CURVATURES = np.array([1.0, 4.0, 10.0])
AXES, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
SEEDS = 8
LANGEVIN_STEP = 0.12


def along_axes(u):
    return jnp.append(u["weights"], u["bias"]) @ AXES


def gaussian(u):
    return -0.5 * jnp.sum(CURVATURES * along_axes(u) ** 2)


def gaussian_observables(u):
    modes = along_axes(u)
    return {
        "amplitude": modes,
        "equipartition": CURVATURES * modes**2,
        "positive": u["bias"] > 0,
        "constant": jnp.ones((), int),
    }


def prior_draw(key):
    draw = jax.random.normal(key, (3,))
    return {"weights": draw[:2], "bias": draw[2]}


def equilibrium_draw(key):
    draw = AXES @ (jax.random.normal(key, (3,)) / np.sqrt(CURVATURES))
    return {"weights": draw[:2], "bias": draw[2]}


@cache
def gaussian_runs(method):
    """`SEEDS` independent runs of four chains, vmapped over the seeds."""

    options = {
        "hmc": {"warmup": 200},
        "mala": {"warmup": 200, "thin": 10},
        "nuts": {"warmup": 0, "step_size": 0.3},
        "langevin": {"warmup": 200, "thin": 10, "step_size": LANGEVIN_STEP},
    }[method]
    initial = equilibrium_draw if options["warmup"] == 0 else prior_draw
    options |= {"method": method, "chains": 4, "samples": 500, "observe": gaussian_observables}
    keys = jax.random.split(jax.random.key(7), SEEDS)
    return jax.vmap(lambda key: sample(gaussian, initial, key, **options))(keys)


def deviations(found, expected):
    return np.asarray((found.mean - expected) / found.standard_error).ravel()


@pytest.mark.parametrize("method", ["hmc", "mala", "nuts", "langevin"])
def test_moments_of_a_gaussian(method):
    runs = gaussian_runs(method)
    inflation = (
        variance_inflation(LANGEVIN_STEP, CURVATURES) if method == "langevin" else np.ones(3)
    )
    z = np.concatenate(
        [
            deviations(runs.estimates["amplitude"], 0.0),
            deviations(runs.estimates["equipartition"], inflation),
            deviations(runs.estimates["positive"], 0.5),
        ]
    )
    assert np.max(np.abs(z)) < 4
    assert 0.4 < np.mean(z**2) < 1.9  # the error bars are neither too small nor too large
    np.testing.assert_allclose(runs.variance_inflation, np.max(inflation), rtol=1e-10)
    # For a quadratic potential the virial is the mean over modes of curvature * amplitude^2: the
    # mean inflation.
    np.testing.assert_allclose(
        runs.virial, np.mean(runs.observables["equipartition"], axis=-1), rtol=1e-8
    )


def test_the_bias_of_langevin_is_seen_mode_by_mode():
    runs = gaussian_runs("langevin")
    found = runs.estimates["equipartition"]
    pooled = np.mean(found.mean, axis=0)
    error = np.sqrt(np.sum(np.square(found.standard_error), axis=0)) / SEEDS
    assert np.all(np.abs(pooled - np.array([1 / 0.94, 1 / 0.76, 1 / 0.4])) < 4 * error)
    assert np.all(pooled[1:] - 1 > 10 * error[1:])


@pytest.mark.parametrize(("method", "target"), [("hmc", 0.8), ("mala", 0.574)])
def test_step_sizes_are_tuned_chain_by_chain(method, target):
    runs = gaussian_runs(method)
    # 100 transitions measure it to about 0.05
    assert np.mean(runs.acceptance_rate) == pytest.approx(target, abs=0.08)
    assert len(np.unique(runs.step_size)) == runs.step_size.size


def test_a_key_determines_the_run():
    runs = gaussian_runs("hmc")
    again = gaussian_runs.__wrapped__("hmc")
    np.testing.assert_array_equal(runs.observables["amplitude"], again.observables["amplitude"])
    assert len(np.unique(runs.log_density[..., -1])) == 4 * SEEDS  # and no two chains are alike


def test_observables_may_be_any_pytree_of_numbers():
    runs = gaussian_runs("hmc")
    assert runs.observables["positive"].shape == (SEEDS, 4, 500)
    assert runs.observables["positive"].dtype == bool
    assert jnp.all(runs.mean["constant"] == 1)
    assert jnp.all(runs.standard_error["constant"] == 0)
    assert jnp.all(runs.effective_samples["constant"] == 0)
    # An observable that has nothing to compare is no objection: the others and the log density
    # decide, in each run.
    deciding = [
        runs.estimates[name].reliable for name in ("amplitude", "equipartition", "positive")
    ]
    deciding.append(jax.vmap(estimate)(runs.log_density).reliable)
    np.testing.assert_array_equal(
        runs.converged, [all(np.all(one[seed]) for one in deciding) for seed in range(SEEDS)]
    )
    assert jnp.any(runs.converged)
    np.testing.assert_allclose(
        runs.observables["amplitude"][:, :, -1],
        jax.vmap(jax.vmap(along_axes))(runs.position),
        rtol=1e-12,
    )


def test_effective_samples_of_langevin_are_those_of_its_exact_autocorrelation():
    runs = gaussian_runs("langevin")
    memory = (1 - LANGEVIN_STEP * CURVATURES) ** 10  # per recorded draw
    exact = 4 * 500 * (1 - memory) / (1 + memory)
    # The last of the modes has no memory left; its estimate scatters the most.
    np.testing.assert_allclose(
        np.mean(runs.effective_samples["amplitude"], axis=0), exact, rtol=0.08
    )


def two_wells(distance, u):
    return jnp.logaddexp(-0.5 * (u - distance) ** 2, -0.5 * (u + distance) ** 2)


def where(u):
    return {"position": u}


def run_two_wells(distance, initial, **options):
    log_density = jax.tree_util.Partial(two_wells, jnp.asarray(distance))
    options = {"warmup": 200, "samples": 1000, "observe": where} | options
    return sample(log_density, jnp.asarray(initial), jax.random.key(1), **options)


def test_two_initialisations_reveal_two_phases():
    split = run_two_wells(6.0, [-6.0, -6.0, 6.0, 6.0])
    assert split.r_hat["position"] > 1.5
    assert split.effective_samples["position"] < 20
    assert not split.converged
    assert "NOT converged" in repr(split)
    # The chains of one initialisation alone look well, each in its own phase.
    apart = estimate(jnp.moveaxis(split.observables["position"].reshape(2, 2, 1000), 0, -1))
    assert np.all(np.abs(apart.mean - np.array([-6, 6])) < 4 * apart.standard_error)
    assert np.all(apart.r_hat < 1.05)


def test_two_initialisations_agree_when_the_barrier_is_low():
    distance = 1.5
    mixed = run_two_wells(distance, [-1.5, -1.5, 1.5, 1.5])
    assert mixed.converged
    assert mixed.mean["position"] == pytest.approx(
        0, abs=4 * float(mixed.standard_error["position"])
    )
    further = estimate(jnp.stack([mixed.observables["position"] ** 2, mixed.virial], axis=-1))
    # The virial theorem, in a potential far from quadratic.
    assert np.all(
        np.abs(further.mean - np.array([1 + distance**2, 1])) < 4 * further.standard_error
    )

    lines = repr(mixed).splitlines()
    assert lines[0].startswith("4 chains x 1000 draws, hmc, acceptance 0.")
    assert lines[0].endswith(", converged")
    assert [line.split("  ")[1] for line in lines[1:]] == ["log density", "virial", "position"]
    assert lines[3].endswith(f"{mixed.estimates['position']}")


def test_a_run_goes_on_from_where_it_stopped():
    first = run_two_wells(1.5, [-1.5, -1.5, 1.5, 1.5])
    np.testing.assert_array_equal(first.observables["position"][:, -1], first.position)
    second = run_two_wells(1.5, first.position, warmup=0, step_size=first.step_size)
    np.testing.assert_array_equal(second.step_size, first.step_size)
    assert second.converged


# A network with frozen random features: the posterior of its readout is a Gaussian process in
# closed form.
TEMPERATURE = 0.05


def linear_posterior(phi, labels, u):
    return -0.5 * jnp.sum(u**2) - jnp.sum((phi @ u - labels) ** 2) / (2 * TEMPERATURE)


def predictions(phi, mean, u):
    return {"output": phi @ u, "square": (phi @ u - mean) ** 2}


@pytest.mark.parametrize("scaled", [False, True])
def test_posterior_of_a_linear_model_is_a_gaussian_process(scaled):
    rng = np.random.default_rng(3)
    train, test, hidden = (rng.standard_normal((size, 2)) for size in (8, 3, 20))
    # prior standard deviations of two groups of readouts
    width = np.where(np.arange(20) < 10, 0.3, 1.5)
    phi, phi_test = (np.tanh(inputs @ hidden.T) * width for inputs in (train, test))
    labels = np.sin(train[:, 0])

    gram, cross = phi @ phi.T + TEMPERATURE * np.eye(8), phi_test @ phi.T
    mean = cross @ np.linalg.solve(gram, labels)
    variance = np.diag(phi_test @ phi_test.T - cross @ np.linalg.solve(gram, cross.T))
    widths = 1 / np.sqrt(1 + np.sum(phi**2, axis=0) / TEMPERATURE)
    done = sample(
        jax.tree_util.Partial(linear_posterior, phi, labels),
        jax.random.normal(jax.random.key(4), (4, 20)),
        jax.random.key(5),
        warmup=300,
        samples=500,
        leapfrog_steps=20,
        observe=jax.tree_util.Partial(predictions, phi_test, mean),
        scale=widths if scaled else np.ones(20),
    )
    assert done.converged
    assert np.all(np.abs(done.mean["output"] - mean) < 4 * done.standard_error["output"])
    assert np.all(np.abs(done.mean["square"] - variance) < 4 * done.standard_error["square"])
    assert np.all(done.standard_error["square"] < 0.15 * variance)
    # The last positions are weights, whatever the units in which the chains ran.
    last = {name: values[:, -1] for name, values in done.observables.items()}
    np.testing.assert_allclose(last["output"], done.position @ phi_test.T, rtol=1e-10)


def test_chains_that_never_move_are_not_converged():
    stuck = run_two_wells(6.0, [6.0, 6.0, 6.0, 6.0], warmup=0, step_size=1e6)
    assert np.all(stuck.log_density == stuck.log_density[0, 0])
    assert stuck.acceptance_rate.max() == 0
    assert not stuck.converged


def quartic(u):
    return -jnp.sum(u**4)


def test_langevin_chooses_a_step_from_the_curvature():
    done = sample(
        quartic, jnp.full((2, 1), 3.0), jax.random.key(0), method="langevin", warmup=2000, samples=4
    )
    # The start has curvature 12 * 9, far above equilibrium (<u^2> = 0.34): the frozen step is that
    # of the end of warm-up.
    assert np.all(done.step_size > 0.1 / 108)
    assert np.all(done.step_size <= 0.1)
    np.testing.assert_allclose(
        done.variance_inflation,
        1 / (1 - done.step_size * 12 * done.position[:, 0] ** 2 / 2),
        rtol=1e-10,
    )


def test_an_unstable_langevin_step_is_refused_or_flagged():
    start = jnp.full((2, 1), 3.0)
    with pytest.raises(
        ValueError, match=r"step_size = 0.019: must be < 2/\(largest curvature\) = 0.01852"
    ):
        sample(quartic, start, jax.random.key(0), method="langevin", step_size=0.019)

    def run(step_size):
        return sample(
            quartic,
            start,
            jax.random.key(0),
            method="langevin",
            step_size=step_size,
            warmup=0,
            samples=4,
        )

    runs = jax.vmap(run)(jnp.array([0.5]))  # traced: it cannot be refused
    assert not np.any(runs.converged)
    assert not np.any(np.isfinite(runs.variance_inflation))


def refused(message, *, log_density=gaussian, initial=None, **options):
    initial = {"weights": jnp.ones((2, 2)), "bias": jnp.ones(2)} if initial is None else initial
    with pytest.raises(ValueError, match=message):
        sample(log_density, initial, jax.random.key(0), **options)


def test_length_of_a_trajectory_in_place_of_its_steps():
    def last(**options):
        start = jnp.ones((2, 3))
        return sample(
            lambda u: -jnp.sum(u**4),
            start,
            jax.random.key(0),
            warmup=0,
            samples=4,
            step_size=0.3,
            **options,
        ).position

    np.testing.assert_allclose(last(trajectory=2.0), last(leapfrog_steps=7), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "hcm"}, "method = 'hcm' does not exist; did you mean 'hmc'"),
        ({"samples": 0}, "samples = 0: must be an integer >= 4"),
        ({"samples": 10.5}, "samples = 10.5"),
        ({"thin": 0}, "thin = 0: must be an integer >= 1"),
        ({"warmup": 5}, "warmup = 5: must be an integer >= 20 to tune"),
        ({"warmup": -1, "step_size": 0.1}, "warmup = -1: must be an integer >= 0"),
        ({"leapfrog_steps": True}, "leapfrog_steps = True"),
        ({"trajectory": 0.0}, "trajectory = 0.0: must be > 0"),
        ({"chains": 3}, "chains = 3: must be left out"),
        ({"step_size": jnp.ones(3)}, r"step_size has shape \(3,\): .* 2 chains"),
        (
            {"initial": {"weights": jnp.ones((3, 2)), "bias": jnp.ones(2)}},
            "chain axes of sizes .* 2, .* 3",
        ),
        ({"initial": {"weights": jnp.ones((0, 2)), "bias": jnp.ones(0)}}, "same positive size"),
        (
            {"initial": {"weights": jnp.ones((2, 2)), "bias": jnp.ones(())}},
            r"initial\['bias'\] .* leading chain axis",
        ),
        (
            {"initial": {"weights": jnp.ones((2, 2), int), "bias": jnp.ones(2)}},
            "must be an array of real numbers",
        ),
        ({"initial": prior_draw}, "needs chains="),
        ({"initial": {}}, "must hold arrays"),
        ({"initial": prior_draw, "chains": 0}, "chains = 0"),
        ({"scale": 2.0}, "scale = 2.0: must be a pytree like one position"),
        ({"scale": {"weights": jnp.ones(3), "bias": 1.0}}, r"scale\['weights'\] has shape \(3,\)"),
        ({"scale": {"weights": 1.0, "bias": -1.0}}, r"scale\['bias'\] = -1.0: must be positive"),
        (
            {"log_density": lambda u: u["weights"]},
            "log_density returns .*: must be one real number",
        ),
        ({"observe": lambda u: {"name": "text"}}, r"observe\(...\)\['name'\] = text"),
        (
            {"observe": lambda u: u["bias"] + 1j},
            "must be an array of real numbers, integers or booleans",
        ),
        (
            {"log_density": lambda u: jnp.log(u["bias"] - 2)},
            r"in chains \[0, 1\]: it and its gradient must be finite",
        ),
        ({"log_density": lambda u: -jnp.sqrt(u["bias"] - 1)}, "gradient must be finite"),
    ],
)
def test_bad_input_is_refused_by_name(options, message):
    refused(message, **options)


@given(st.one_of(st.floats(max_value=0), st.sampled_from([np.nan, np.inf])))
def test_a_step_size_must_be_positive(step_size):
    refused("step_size = .*: must be positive and finite", step_size=step_size)


def test_a_run_is_doubled_until_it_has_converged_and_its_first_draws_stay():
    key = jax.random.key(3)
    options = {"method": "mala", "observe": gaussian_observables, "average": gaussian_observables}

    def go_on(done, key, draws):
        return sample(
            gaussian, done.position, key, warmup=0, samples=draws, step_size=done.step_size,
            **options,
        )  # fmt: skip

    first = sample(gaussian, prior_draw, key, chains=4, warmup=100, samples=16, **options)

    def lengthened(doublings, converged):
        return doubled(first, go_on, key, doublings=doublings, converged=converged)

    assert lengthened(5, lambda run: True) is first
    assert lengthened(0, lambda run: run.converged) is first
    longer = lengthened(2, lambda run: False)
    assert longer.log_density.shape == longer.virial.shape == (4, 64)
    np.testing.assert_array_equal(longer.log_density[:, :16], first.log_density)
    mode = longer.observables["amplitude"]
    assert mode.shape == (4, 64, 3)
    np.testing.assert_allclose(longer.mean["amplitude"], mode.mean(axis=(0, 1)), rtol=1e-12)
    assert not np.array_equal(mode[:, 16:32], mode[:, 32:48])
    averages = longer.averages["amplitude"]
    np.testing.assert_allclose(averages, mode.mean(axis=1), rtol=1e-12)
    # a rule of the diagnostics ends the run as soon as it is met
    enough = lengthened(9, lambda run: run.converged)
    assert enough.converged
    assert not first.converged
    assert enough.log_density.shape[1] < 16 * 2**9


def test_doublings_must_be_a_number_of_times():
    with pytest.raises(ValueError, match="doublings = -1: must be an integer >= 0"):
        doubled(None, None, None, doublings=-1, converged=None)
