"""Theories beside trained networks: each is accepted where its assumptions hold by construction,
predicts what is measured there, and is refused with a number where they fail."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import erf
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.observables.assumptions import Predicted, TheoryVerdict, below, unmet
from orderparam.observables.dense import recognise
from orderparam.observables.network import read_network
from orderparam.observables.observable import Observed
from orderparam.observables.theory_comparison import TheoryComparison
from orderparam.systems.extensive_width import WeightedTeacher, bayes_optimal


def _data(seed, n, d, fresh):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n + fresh, d))
    y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    return x[:n], y[:n], (x[n:], y[n:])


def _start(seed, width, d, readout=1.0):
    rng = np.random.default_rng(seed)
    return (
        jnp.asarray(rng.normal(size=(width, d))),
        jnp.asarray(readout * rng.normal(size=width)),
    )


def _network(theta, x):
    w, a = theta
    return jnp.tanh(x @ w.T / x.shape[1] ** 0.5) @ a / len(a) ** 0.5


def _trained(f, theta, x, y, goal, which=(1.0, 1.0)):
    """Gradient descent to a training error, of some layers only."""
    largest = np.linalg.eigvalsh(op.observables.tangent_kernel(f, theta, x))[-1]
    step = 0.2 * len(x) / largest

    @jax.jit
    def run(theta):
        def error(t):
            return jnp.mean((f(t, x) - y) ** 2)

        def descend(state):
            t, k, _ = state
            value, slope = jax.value_and_grad(error)(t)
            moved = tuple(w - on * step * g for w, g, on in zip(t, slope, which))
            return moved, k + 1, value

        return jax.lax.while_loop(
            lambda state: (state[2] > goal) & (state[1] < 20_000), descend, (theta, 0, jnp.inf)
        )

    return run(theta)[0]


def _compared(f, theta, start, data, **options):
    x, y, fresh = data
    found = op.inspect(
        f, x, y, parameters=theta, initial=start, held_out=fresh, quick=True,
        seeds=options.pop("seeds", ()),
    )  # fmt: skip
    return op.compare_with_theory(found, **options)


def _by_name(found):
    return {one.theory: one for one in found.theories}


def test_a_lazy_network_is_that_of_its_kernel():
    data, start = _data(0, 60, 6, 120), _start(0, 256, 6)
    theta = _trained(_network, start, *data[:2], 0.1)
    found = _compared(_network, theta, start, data)
    kernel = _by_name(found)["kernel of the start"]
    assert kernel.verdict == "applies"
    number = kernel.test_error
    assert abs(number.deviation) < 0.05
    average = next(one for one in kernel.predictions if "mean over training sets" in one.name)
    assert abs(average.z) < 3
    assert kernel.by_examples[7] > kernel.by_examples[30] > kernel.by_examples[60]
    assert "'kernel of the start' describes this network" in found.sentence
    assert _by_name(found)["random features, given first layers"].verdict == "refused"


def test_held_out_examples_of_another_distribution():
    """The network of these examples is predicted, the mean over training sets is not: random
    divisions of the same examples would have a much smaller error."""
    x, y, fresh = _data(0, 60, 6, 120)
    shifted = fresh[0] + 1.5, fresh[1] + 1.5
    start = _start(0, 256, 6)
    theta = _trained(_network, start, x, y, 0.1)
    found = _compared(_network, theta, start, (x, y, shifted))
    kernel = _by_name(found)["kernel of the start"]
    assert abs(kernel.test_error.deviation) < 0.05
    assert not any("mean over training sets" in one.name for one in kernel.predictions)
    assert kernel.by_examples == {}
    assert "divide the examples at random" in kernel.notes[-1]


def test_a_rich_network_refuses_the_kernel_with_its_number():
    data, start = _data(1, 60, 6, 120), _start(1, 48, 6)

    def small(theta, x):
        return (_network(theta, x) - _network(start, x)) * 0.05

    theta = _trained(small, start, *data[:2], 0.05)
    found = _compared(small, theta, start, data)
    kernel = _by_name(found)["kernel of the start"]
    assert kernel.verdict == "refused"
    assert kernel.predictions == ()
    assert kernel.assumptions[0].measured > 0.3
    assert f"measured {kernel.assumptions[0].measured:.3g}" in str(found)


def test_a_trained_read_out_is_one_on_random_features():
    data, start = _data(2, 80, 6, 160), _start(2, 120, 6, 0.01)
    theta = _trained(_network, start, *data[:2], 0.15, which=(0.0, 1.0))
    found = _by_name(_compared(_network, theta, start, data))
    features = found["random features, given first layers"]
    assert features.verdict == "applies"
    assert features.assumptions[0].measured == 0
    assert abs(features.test_error.z) < 3
    assert set(features.by_width) == {30.0, 60.0, 120.0}
    last = found["kernel of the trained last layer"]
    assert abs(last.predictions[0].z) < 3


def test_one_giant_step_and_ridge():
    rng = np.random.default_rng(0)
    d, width, n = 60, 80, 150
    teacher = rng.normal(size=d)
    teacher /= np.linalg.norm(teacher)
    x = rng.normal(size=(1000, d))
    y = x @ teacher + 0.2 * rng.normal(size=1000)
    w = rng.normal(size=(width, d))
    w /= np.linalg.norm(w, axis=1)[:, None]
    batch, rest = slice(0, 300), slice(300, 1000)
    slopes = (1 - np.tanh(x[batch] @ w.T) ** 2) * y[batch, None]
    moved = w + 1.5 * slopes.T @ x[batch] / 300
    x, y = x[rest], y[rest]
    features = np.tanh(x[:n] @ moved.T)
    a = np.linalg.solve(features.T @ features + 5 * np.eye(width), features.T @ y[:n])

    def model(theta, x):
        return jnp.tanh(x @ theta[0].T) @ theta[1]

    data = x[:n], y[:n], (x[n:], y[n:])
    found = _compared(model, (moved, a), (w, 0 * a + 1e-3), data)
    step = _by_name(found)["one giant step"]
    assert step.verdict == "applies", step.assumptions
    assert abs(step.test_error.z) < 3
    assert abs(step.test_error.deviation) < 0.15
    # inputs that are not isotropic are refused before anything is predicted
    squeezed = np.where(np.arange(d) < 5, 3.0, 0.3)

    def other(theta, x):
        return model(theta, x / squeezed)

    stretched = x[:n] * squeezed, y[:n], (x[n:] * squeezed, y[n:])
    refused = _by_name(_compared(other, (moved, a), (w, 0 * a + 1e-3), stretched))["one giant step"]
    assert refused.verdict == "refused"


def _sampled(f, x, y, temperature, shapes, seed, steps=1500, size=0.012):
    """Hamiltonian Monte Carlo of the posterior with a standard normal prior, started from it."""

    def energy(t):
        return (
            jnp.sum((f(t, x) - y) ** 2) / (2 * temperature)
            + sum(jnp.sum(part**2) for part in t) / 2
        )

    slope = jax.grad(energy)

    def transition(theta, key):
        *drawn, last = jax.random.split(key, len(shapes) + 1)
        speed = tuple(jax.random.normal(one, shape) for one, shape in zip(drawn, shapes))

        def leap(state, _):
            t, p = state
            p = tuple(q - size / 2 * g for q, g in zip(p, slope(t)))
            t = tuple(w + size * q for w, q in zip(t, p))
            return (t, tuple(q - size / 2 * g for q, g in zip(p, slope(t)))), None

        (after, late), _ = jax.lax.scan(leap, (theta, speed), None, 30)
        gain = energy(theta) - energy(after)
        gain += sum(jnp.sum(p**2) - jnp.sum(q**2) for p, q in zip(speed, late)) / 2
        taken = jnp.log(jax.random.uniform(last)) < gain
        return jax.tree.map(lambda new, old: jnp.where(taken, new, old), after, theta), taken

    keys = jax.random.split(jax.random.key(seed), steps)
    first = tuple(jnp.asarray(np.random.default_rng(seed).normal(size=shape)) for shape in shapes)
    theta, taken = jax.jit(lambda t: jax.lax.scan(transition, t, keys))(first)
    assert taken.mean() > 0.9
    return theta


def test_a_sample_of_a_posterior():
    d, width, n, temperature = 10, 40, 60, 0.05
    rng = np.random.default_rng(1)
    x = rng.normal(size=(260, d))
    y = x[:, 0] + 0.3 * x[:, 1] * x[:, 2]
    data = x[:n], y[:n], (x[n:], y[n:])

    def model(theta, x):
        return erf(x @ theta[0].T / d**0.5) @ theta[1] / width**0.5

    shapes = ((width, d), (width,))
    start = _start(5, width, d)
    samples = [_sampled(model, *data[:2], temperature, shapes, seed) for seed in range(3)]
    found = _by_name(
        _compared(model, samples[0], start, data, temperature=temperature, seeds=samples[1:])
    )
    limit = found["proportional limit"]
    assert limit.verdict != "refused", limit.assumptions
    assert abs(limit.test_error.z) < 3
    assert len(limit.by_width) == 6
    adapting = found["adapting kernel"]
    assert adapting.verdict != "refused"
    assert {one.name for one in adapting.predictions} == {
        "weights along the learned direction", "test error of the mean network",
    }  # fmt: skip
    assert all(abs(one.z) < 3 for one in adapting.predictions)
    # a draw of the prior is no sample of the posterior: its training error is far too large
    drawn = _by_name(_compared(model, start, start, data, temperature=temperature))
    assert drawn["proportional limit"].verdict == "refused"
    untold = _by_name(_compared(model, samples[0], start, data))
    assert untold["proportional limit"].verdict == "refused"


def test_many_units_of_which_the_data_identify_some():
    """Read-outs that fall: the theory at the network's own read-outs and norms; few examples for
    the square of the inputs, and inputs that are not isotropic, are refused with the number."""
    d, width, n = 12, 6, 400
    rng = np.random.default_rng(4)
    w = rng.normal(size=(width, d))
    w /= np.linalg.norm(w, axis=1)[:, None]
    a = 1.0 / np.arange(1, width + 1)

    def model(theta, x):
        return jnp.tanh(2 * x @ theta[0].T) @ theta[1]

    x = rng.normal(size=(n + 300, d))
    y = np.asarray(model((w, a), x)) + 0.5 * rng.normal(size=n + 300)

    def verdict(count, inputs):
        data = inputs[:count], y[:count], (inputs[n:], y[n:])
        found = _compared(model, (w, a), (w, 0.1 * a), data)
        return _by_name(found)["extensive width"]

    held = verdict(n, x)
    assert held.verdict == "applies", held.assumptions
    teacher = WeightedTeacher(d, a, 0.25, n)  # of tanh(2 z)
    expected = bayes_optimal(teacher)
    units, _, error = held.predictions
    assert units.value == float(expected.effective_width)
    assert error.value == pytest.approx(float(expected.error), rel=0.3)  # at the measured noise
    few = verdict(12, x)
    assert few.verdict == "approximate"
    assert f"measured {12 / d**2:.3g}" in str(few.assumptions[1])
    assert verdict(n, x * np.where(np.arange(d) < 2, 5.0, 0.3)).verdict == "refused"


def test_a_dense_network_is_recognised_however_it_is_written():
    x = np.random.default_rng(0).normal(size=(30, 5))
    w, v, a = (
        np.random.default_rng(k).normal(size=shape)
        for k, shape in enumerate(((8, 5), (7, 8), (1, 7)))
    )

    def scaled(theta, x):
        h = jax.nn.relu(0.3 * (theta[0] @ x.T))
        return (2 * theta[2] @ jax.nn.relu(theta[1] @ h / 8**0.5)).T

    found = recognise(read_network(scaled, x, (w, v, a)), x)
    assert found.activation == "relu"
    assert found.widths == [8, 7]
    h = x
    for weight in found.weights[:-1]:
        h = np.maximum(h @ weight.T, 0)
    assert h @ found.weights[-1].T == pytest.approx(np.asarray(scaled((w, v, a), x)), rel=1e-6)

    def shifted(theta, x):
        return jax.nn.relu(x @ theta[0].T + 1.0) @ theta[1].T

    with pytest.raises(ValueError, match="without biases"):
        recognise(read_network(shifted, x, (w, a @ v)), x)


def test_what_cannot_be_compared_is_refused():
    x = np.random.default_rng(0).normal(size=(40, 3))
    w = np.ones(3)

    def linear(theta, x):
        return x @ theta

    with pytest.raises(ValueError, match="held_out"):
        op.compare_with_theory(op.inspect(linear, x, x @ w, parameters=w, quick=True))
    with pytest.raises(ValueError, match="files"):
        op.compare_with_theory(op.inspect({"h": x}, targets=x[:, 0], quick=True))
    found = op.inspect(linear, x, x @ w, parameters=w, held_out=(x[:4], x[:4] @ w), quick=True)
    with pytest.raises(ValueError, match="at least 8"):
        op.compare_with_theory(found)
    found = op.inspect(linear, x, x @ w, parameters=w, held_out=(x, x @ w), quick=True)
    with pytest.raises(ValueError, match="temperature"):
        op.compare_with_theory(found, temperature=0.0)
    words = op.compare_with_theory(found).sentence
    assert words.startswith("No theory here describes the test error of this network")
    asked = "'kernel of the start', 'random features, given first layers', 'one giant step'"
    assert f"{asked} (give the network before training)" in words
    assert "(give temperature= if it was sampled" in words


def test_the_sentence_names_the_assumptions_that_fail():
    """Once, where several theories share one; a number beside it where it was measured."""
    error = Observed("test error", 1.01, 0.9, 1.12)
    theories = (
        TheoryVerdict("kernel", (below("the network is lazy", 0.8, 0.1, 0.3),)),
        *(TheoryVerdict(name, (unmet("two layers", "there are three"),)) for name in "ab"),
    )
    compared = TheoryComparison(theories, 100, 10, error, 0.1)
    assert compared.sentence == (
        "No theory here describes the test error of this network. An assumption fails of 'kernel': "
        "the network is lazy: measured 0.8 (below 0.1; refused above 0.3); of 'a' and 'b': two "
        "layers (there are three)."
    )
    assert "  fails: the network is lazy: measured 0.8" in str(compared)


def test_the_sentence_names_what_a_theory_misses():
    right = Predicted("test error", 1.0, Observed("test error", 1.01, 0.9, 1.12))
    wrong = Predicted("learnability", 0.8, Observed("learnability", 0.5, 0.45, 0.55))

    def words(measured, predictions):
        verdict = TheoryVerdict("kernel", (below("lazy", measured, 0.1, 0.3),), predictions)
        return TheoryComparison((verdict,), 100, 10, right.measured, 0.1).sentence

    assert words(0.05, (right,)).startswith("The theory 'kernel' describes this network")
    assert words(0.05, (right, wrong)).endswith("it misses learnability (z = -11.8).")
    assert "describes approximately this network" in words(0.2, (right,))


PROGRAM = """
import jax.numpy as jnp


def network(theta, x):
    return jnp.tanh(x @ theta["first.weight"].T) @ theta["last.weight"].T
"""


def test_the_command_reads_a_model_and_compares(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    y = x[:, 0]
    (tmp_path / "inspected_nets.py").write_text(PROGRAM)
    np.savez("data.npz", x=x[:50], y=y[:50])
    np.savez("fresh.npz", x=x[50:], y=y[50:])
    w, a = rng.normal(size=(30, 4)), rng.normal(size=(1, 30)) * 0.01
    h = np.tanh(x[:50] @ w.T)
    learned = np.linalg.solve(h.T @ h + np.eye(30), h.T @ y[:50])[None]
    np.savez("net.npz", **{"first.weight": w, "last.weight": learned})
    np.savez("start.npz", **{"first.weight": w, "last.weight": a})
    words = [
        "inspect", "inspected_nets.py:network", "data.npz", "--inputs", "x", "--target", "y",
        "--parameters", "net.npz", "--init", "start.npz",
    ]  # fmt: skip
    asked = ["--held-out", "fresh.npz", "--theory", "--rate", "0.01", "--temperature", "0.1"]
    monkeypatch.setattr("sys.argv", ["orderparam", *words, *asked, "--quick"])
    ended = CliRunner().invoke(app, [*words, *asked, "--quick"])
    assert ended.exit_code == 0, ended.output
    assert "largest curvature x rate / 2 at the start" in ended.output
    assert "give temperature=" not in ended.output
    assert "random features, given first layers: applies" in ended.output
    page = next(tmp_path.glob("results/*/report.html")).read_text()
    assert "<td>random features, given first layers</td><td>applies</td>" in page.replace("\n", "")
    assert "<h2>Predicted and measured</h2>" in page
    assert "describes this network" in page
    repeated = "orderparam inspect inspected_nets.py:network data.npz --inputs x --target y"
    assert f"Made by <code>{repeated}" in page
    summary = json.loads(next(tmp_path.glob("results/*/summary.json")).read_text())
    assert summary["command"].startswith(repeated)
    assert summary["version"] == op.__version__
    for wrong, said in (
        ([*words, "--theory"], "--theory: needs"),
        (["inspect", "data.npz", "--theory"], "--theory: is for a model"),
        ([*words, "--temperature", "1"], "--temperature: is for --theory"),
        (["inspect", "inspected_nets.py:absent", "data.npz", "--inputs", "x"], "there are: jnp, n"),
        (["inspect", "inspected_nets.py:network", "data.npz"], "--inputs: a model needs"),
        (["inspect", "no_module_here:f", "data.npz", "--inputs", "x"], "there is no module"),
    ):
        ended = CliRunner().invoke(app, wrong)
        assert ended.exit_code == 2
        assert said in ended.stderr
        assert len(ended.stderr.strip().splitlines()) == 1
