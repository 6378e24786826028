"""`inspect`: one network in several forms gives one set of numbers; wrong files end in one line."""

import json
import pickle
import struct

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.data.safetensors import read_safetensors
from orderparam.observables.network import read_network
from orderparam.observables.network_numbers import _differ
from orderparam.observables.observable import Observed
from orderparam.observables.tangent_kernel import tangent_kernel


def _write_safetensors(path, arrays):
    kinds = {"float64": "F64", "float32": "F32", "int64": "I64"}
    header, data = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": kinds[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 6))
    y = np.sign(x[:, 0] * x[:, 1])
    first, second = rng.normal(size=(20, 6)), rng.normal(size=(3, 20))
    return x, y, first, second


def _numbers(found):
    return {
        (name, one.name): one.value
        for name, numbers in (*found.layers.items(), *enumerate(found.weights.values()))
        for one in numbers
    }


def test_one_network_in_four_forms(network, tmp_path):
    x, y, first, second = network
    hidden = np.maximum(x @ first.T, 0)

    def model(parameters, x):
        return jax.nn.relu(x @ parameters[0].T) @ parameters[1].T

    as_function = op.inspect(model, x, y, parameters=(first, second), quick=True)

    mlp = eqx.nn.MLP(6, 3, 20, 1, use_bias=False, use_final_bias=False, key=jax.random.key(0))
    mlp = eqx.tree_at(lambda m: [layer.weight for layer in m.layers], mlp, [first, second])
    as_module = op.inspect(mlp, x, y, quick=True)
    assert _numbers(as_module) == pytest.approx(_numbers(as_function), rel=1e-8, nan_ok=True)

    arrays = {"hidden 1": hidden, "outputs": hidden @ second.T, "y": y}
    np.savez(tmp_path / "acts.npz", **arrays)
    _write_safetensors(tmp_path / "net.safetensors", {"0.weight": first, "1.weight": second})
    files = [tmp_path / "acts.npz", tmp_path / "net.safetensors"]
    from_files = op.inspect(files, targets="y", quick=True)
    expected = _numbers(as_function)
    shared = {key: value for key, value in _numbers(from_files).items() if key in expected}
    assert len(shared) == 6 + 6
    for key, value in shared.items():
        assert value == pytest.approx(expected[key], rel=1e-9, nan_ok=True)

    data = as_function.dataset()
    assert data["alignment"].dims == ("layer",)
    first_row = as_function.layers["hidden 1"][0]
    assert float(data["alignment_p"].sel(layer="hidden 1")) == first_row.p_value
    assert data["alignment"].attrs["null"] == "rows permuted"
    text = str(as_function)
    assert "hidden 1" in text
    assert "not measured: similarity to the start" in text
    page = as_function.html()
    assert "data:image/png;base64," in page
    assert "src='http" not in page


def test_products_of_a_convolution_keep_their_channels():
    class Small(eqx.Module):
        conv: eqx.nn.Conv2d
        out: eqx.nn.Linear

        def __call__(self, x):
            return self.out(jax.nn.relu(self.conv(x)).reshape(-1))

    keys = jax.random.split(jax.random.key(0))
    net = Small(eqx.nn.Conv2d(1, 3, 3, key=keys[0]), eqx.nn.Linear(48, 2, key=keys[1]))
    images = np.random.default_rng(0).normal(size=(10, 1, 6, 6))
    conv, out = read_network(net, images).layers
    assert conv.inputs.shape == (10, 1, 36)
    expected = jax.vmap(net.conv)(images) - net.conv.bias
    assert conv.outputs == pytest.approx(np.asarray(expected).reshape(10, 3, 16), abs=1e-12)
    assert conv.weight.shape == (3, 1, 3, 3)
    assert out.weight == pytest.approx(np.asarray(net.out.weight))


def test_a_network_at_its_start_has_not_moved(network):
    x, y, first, second = network

    def model(parameters, x):
        return jnp.tanh(x @ parameters[0].T) @ parameters[1][:1].T

    start = (first, second)
    found = op.inspect(
        model, x, y, parameters=(first + 0.1, second), initial=start, held_out=(x, y)
    )
    numbers = {one.name: one.value for one in found.network}
    assert numbers["kernel drift"] > 0
    assert any("training error" in one or "lazy" in one for one in (*found.missing, *numbers))
    same = op.inspect(model, x, y, parameters=start, initial=start)
    assert {one.name: one.value for one in same.network}["kernel drift"] == 0
    layer = {one.name: one for one in same.layers["hidden 1"]}
    assert layer["similarity to start"].value == pytest.approx(1)
    assert layer["gain of alignment"].value == 0


def test_what_was_learned_of_the_target_and_of_the_modes_of_a_kernel():
    """A linear model on inputs of unequal variances: modes are the inputs, learned in parts."""
    rng = np.random.default_rng(0)
    scales = np.array([4.0, 2.0, 1.0, 0.5])
    x, fresh = (rng.normal(size=(count, 4)) * scales for count in (200, 3000))
    truth, learned = np.ones(4) / scales, np.array([0.9, 0.7, 0.4, 0.1])

    def model(theta, x):
        return x @ theta

    found = op.inspect(
        model, x, x @ truth, parameters=learned * truth, initial=0 * truth,
        held_out=(fresh, fresh @ truth),
    )  # fmt: skip
    numbers = {one.name: one for one in found.network}
    whole = numbers["learnability of the target"]
    assert whole.low < learned.mean() < whole.high
    assert whole.p_value == pytest.approx(1e-3)
    for k, part in enumerate(learned, 1):
        mode = numbers[f"learnability of mode {k} of the start's kernel"]
        assert mode.value == pytest.approx(part, abs=0.05)
    alone = op.inspect(model, x, x @ truth, parameters=learned * truth)
    assert any("learnability of the target: give held-out" in one for one in alone.missing)


def test_the_strengths_of_outliers_stand_in_the_table():
    rng = np.random.default_rng(0)
    u, v = (one / np.linalg.norm(one) for one in (rng.normal(size=80), rng.normal(size=40)))
    start = rng.normal(size=(80, 40))
    w = start + 3 * 80**0.5 * np.outer(u, v)
    found = op.inspect({"w.weight": w}, initial={"w.weight": start})
    numbers = {one.name: one for one in found.weights["w.weight"]}
    assert numbers["outliers"].value == 1
    strength = numbers["strength of outlier 1"]
    assert strength.low < 3 < strength.high
    left, _, right = np.linalg.svd(w)
    for overlap in ((left[:, 0] @ u) ** 2, (right[0] @ v) ** 2):
        assert f"{overlap:.2f}" in strength.note.partition("change of weights")[2]


def test_scikit_learn_and_its_probabilities():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    found = op.inspect(LogisticRegression().fit(x, y), x, y, quick=True)
    assert "calibration: squared gap" in [one.name for one in found.network]
    assert list(found.layers) == ["outputs"]


def test_a_random_network_and_missing_inputs_are_refused(network):
    x = network[0]
    calls = iter(range(100))

    def noisy(parameters, x):
        return x * (1 + next(calls))

    with pytest.raises(ValueError, match="two passes"):
        op.inspect(noisy, x, parameters=())
    with pytest.raises(ValueError, match="inputs"):
        op.inspect(noisy, parameters=())
    with pytest.raises(ValueError, match="parameters"):
        op.inspect(noisy, x)
    with pytest.raises(ValueError, match="must be a function"):
        op.inspect(3, x)


def _run(*words):
    return CliRunner().invoke(app, ["inspect", *map(str, words)])


def test_the_command_writes_a_report(network, tmp_path, monkeypatch):
    x, y, first, _ = network
    monkeypatch.chdir(tmp_path)
    np.savez("acts.npz", hidden=np.maximum(x @ first.T, 0), y=y)
    np.savez("start.npz", hidden=np.maximum(x @ (first + 0.1).T, 0), y=y)
    ended = _run("acts.npz", "--target", "y", "--init", "start.npz", "--quick")
    assert ended.exit_code == 0, ended.output
    folder = tmp_path / "results" / "inspect-acts"
    assert "similarity to start" in (folder / "report.html").read_text()
    summary = json.loads((folder / "summary.json").read_text())
    assert 0 < summary["numbers"]["hidden"]["similarity to start"][0] < 1
    assert (folder / "figure.png").exists()


def test_what_a_start_of_weights_alone_does_not_allow_is_named(network, tmp_path):
    x, y, first, _ = network
    now, start = tmp_path / "now.npz", tmp_path / "start.npz"
    np.savez(now, hidden=np.maximum(x @ first.T, 0), y=y, **{"0.weight": first})
    for name, word in (("0.weight", "the start has none"), ("1.weight", "those of 1.weight")):
        np.savez(start, **{name: first + 0.1})
        out = tmp_path / name
        ended = _run(now, "--target", "y", "--init", start, "--quick", "--out", out)
        assert ended.exit_code == 0, ended.output
        similar = "similarity to the start, gain of alignment of hidden: the start has none"
        assert similar in ended.stdout
        assert word in ended.stdout
        assert ("change of weights of 0.weight" in ended.stdout) == (name == "1.weight")


def _hostile(name):
    good = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    headers = {
        "too long": struct.pack("<Q", 2**60) + b"{}",
        "no json": struct.pack("<Q", 4) + b"\x80abc",
        "list": struct.pack("<Q", 2) + b"[]",
        "deep": struct.pack("<Q", 200000) + b"[" * 200000,
    }
    entries = {
        "beyond": {**good, "data_offsets": [0, 2**50]},
        "negative": {**good, "data_offsets": [-16, 0]},
        "huge": {**good, "shape": [2**40, 2**40]},
        "type": {**good, "dtype": "OBJ"},
        "text": "x",
        "shape": {**good, "shape": "ab"},
    }
    if name in headers:
        return headers[name]
    text = json.dumps({"w": entries[name]}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


@pytest.mark.parametrize(
    "name",
    ["too long", "no json", "list", "deep", "beyond", "negative", "huge", "type", "text", "shape"],
)
def test_damaged_safetensors_end_in_one_line(name, tmp_path):
    file = tmp_path / "net.safetensors"
    file.write_bytes(_hostile(name))
    with pytest.raises(ValueError, match=r"net\.safetensors: "):
        read_safetensors(file)
    ended = _run(file)
    assert ended.exit_code == 2
    assert "Traceback" not in ended.output


def test_half_precision_is_read(tmp_path):
    values = np.array([1.5, -2.0, 0.25, 3.0], "<f4")
    raw = (values.view("<u4") >> 16).astype("<u2").tobytes()
    text = json.dumps({"w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw)
    assert read_safetensors(tmp_path / "b.safetensors")["w"].ravel().tolist() == values.tolist()


class _Harmful:
    def __reduce__(self):
        return (open, ("harm.txt", "w"))


def test_no_pickle_is_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pt").write_bytes(pickle.dumps(_Harmful()))
    np.save("a.npy", np.array([_Harmful()], dtype=object), allow_pickle=True)
    np.savez("a.npz", x=np.array([_Harmful()], dtype=object))
    (tmp_path / "net.safetensors").write_bytes(pickle.dumps(_Harmful()))
    for name in ("net.pt", "a.npy", "a.npz", "net.safetensors"):
        ended = _run(name)
        assert ended.exit_code == 2, name
        assert len(ended.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "harm.txt").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.npz"], "there is no file"),
        (["acts.npz", "--target", "z"], "there is no array"),
        (["acts.npz", "--target", "short"], "no array has a row"),
        (["acts.npz", "--init", "no.npz"], "there is no file"),
        (["words.npz"], "must be real numbers"),
        (["gaps.npz"], "nothing can be measured: h: the layer holds entries that are not finite"),
        (["letter.npz"], "is not an .npz file"),
        (["net.py", "acts.npz"], "name the model in it, as in net.py:network"),
    ],
)
def test_wrong_calls_end_in_one_line(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("acts.npz", h=np.random.default_rng(0).normal(size=(30, 4)), short=np.ones(3))
    np.savez("gaps.npz", h=np.full((30, 4), np.nan))
    np.savez("words.npz", h=np.array([["a", "b"]] * 9))
    (tmp_path / "letter.npz").write_text("Dear Sir or Madam")
    (tmp_path / "net.py").write_text("")
    ended = _run(*words)
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_start_may_consist_of_weights_alone(tmp_path, monkeypatch):
    """Activations with targets are saved after training, often without those before."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    start = rng.normal(size=(20, 6))
    np.savez("acts.npz", h=rng.normal(size=(30, 4)), y=rng.normal(size=30))
    np.savez("net.npz", **{"first.weight": start + np.outer(np.ones(20), np.ones(6))})
    np.savez("start.npz", **{"first.weight": start})
    ended = _run("acts.npz", "net.npz", "--target", "y", "--init", "start.npz", "--out", "found")
    assert ended.exit_code == 0, ended.stderr
    assert "warning" not in ended.stderr
    found = xr.open_zarr("found/observed.zarr", group="observed", consolidated=False)
    moved = np.linalg.norm(np.ones((20, 6))) / np.linalg.norm(start)
    assert float(found.change_of_weights.squeeze()) == pytest.approx(moved)
    assert found.outliers.attrs["estimand"] == "entries"


def test_descent_at_the_edge_of_stability():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    w = np.array([1.0, -1.0, 0.5])
    largest = 2 * np.linalg.eigvalsh(x.T @ x / 50)[-1]

    def model(theta, x):
        return x @ theta

    found = op.inspect(
        model, x, x @ w, parameters=0.9 * w, initial=0 * w, held_out=(x, x @ w), rate=0.3
    )
    numbers = {one.name: one for one in found.network}
    for name in ("largest curvature x rate / 2", "largest curvature x rate / 2 at the start"):
        assert numbers[name].value == pytest.approx(largest * 0.3 / 2, rel=1e-10)
        assert numbers[name].low <= largest * 0.3 / 2 <= numbers[name].high
    assert "lazy-to-rich number" in numbers
    with pytest.raises(ValueError, match="rate"):
        op.inspect(model, x, x @ w, parameters=w, rate=-1.0)


@pytest.mark.parametrize(
    ("limit", "until"), [(1.5, 1e5), pytest.param(0.5, 1e7, marks=pytest.mark.long)]
)
def test_the_learning_coefficient_of_a_regular_and_of_a_singular_minimum(limit, until):
    """Three independent parameters, and a product of two that is zero (closed forms).

    The product approaches its limit as 1 / ln t, more slowly than chains of this length can tell
    from a constant: the median of all laws is low, and what must hold is the interval.
    """
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.normal(size=(60, 3)))[0] * 60**0.5

    def model(theta, x):
        return x @ theta if limit == 1.5 else x[:, 0] * theta[0] * theta[1]

    w = np.array([1.0, -1.0, 0.5]) if limit == 1.5 else np.zeros(2)
    y = np.asarray(model(w, x))
    found = op.inspect(model, x, y, parameters=w, learning_coefficient=until, quick=True)
    numbers = {one.name: one for one in found.network}
    for name in ("learning coefficient", "learning coefficient, prior of half the width"):
        assert numbers[name].low < limit < numbers[name].high
        assert numbers[name].high - numbers[name].low < 0.5 * limit
        if limit == 1.5:
            assert numbers[name].value == pytest.approx(limit, rel=0.15)
        assert (numbers[name].p_value < 1e-3) == (limit == 0.5)
    assert sum("running coupling" in name for name in numbers) >= 6


@pytest.mark.long
@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_the_learning_coefficient_of_logistic_regression(framework):
    """Two regular parameters at the minimum of the cross-entropy: 1."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    y = (x[:, 0] + rng.normal(size=80) > 0).astype(int)
    fitted = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(x, y)
    if framework == "jax":
        given = {"model": lambda w, x: x @ w, "parameters": fitted.coef_.T}
    else:
        torch = pytest.importorskip("torch")
        net = torch.nn.Linear(2, 1, bias=False).double()
        with torch.no_grad():
            net.weight[:] = torch.as_tensor(fitted.coef_)
        given = {"model": net}
    words = {"loss": "cross-entropy", "learning_coefficient": 1e4, "quick": True}
    found = op.inspect(given.pop("model"), x, y, **given, **words)
    coefficient = next(one for one in found.network if one.name == "learning coefficient")
    with pytest.raises(ValueError, match="loss = 'hinge'"):
        op.inspect({"h": x}, loss="hinge")
    assert coefficient.low < 1 < coefficient.high
    assert coefficient.value == pytest.approx(1, rel=0.15)


def test_two_priors_that_differ_are_reported():
    one, near, far = (Observed("", v, v - 0.2, v + 0.2) for v in (6.0, 6.2, 7.0))
    assert _differ(one, near) == ""
    assert "give 6 and 7, which differ" in _differ(one, far)
    assert "give 7 and 6, which differ" in _differ(far, one)
    assert _differ(one, Observed("", np.nan)) == ""


def test_where_the_learning_coefficient_is_not_measured(network):
    x, y, first, second = network

    def model(parameters, x):
        return jnp.tanh(x @ parameters[0].T) @ parameters[1].T

    def missing(model, *data, **options):
        found = op.inspect(model, *data, quick=True, **options)
        return next(one for one in found.missing if one.startswith("learning coefficient"))

    def ask(y, **options):
        return missing(model, x[: len(y)], y, parameters=(first, second), **options)

    assert "ask for it" in ask(y)
    assert "same columns" in ask(y, learning_coefficient="auto")
    three = np.stack([y[:20]] * 3, axis=1)
    assert "leaves no window" in ask(three, learning_coefficient="auto")
    assert "a model in JAX or PyTorch" in missing({"h": x}, targets=y, learning_coefficient="auto")
    for wrong in (1.0, np.inf, np.nan, "long"):
        with pytest.raises(ValueError, match="learning_coefficient = "):
            op.inspect(model, x, y, parameters=(first, second), learning_coefficient=wrong)


def test_an_interrupt_leaves_what_was_measured(network, tmp_path, monkeypatch):
    x, y, first, _ = network

    def stop(*_):
        yield Observed("first of the overlaps", 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr("orderparam.observables.inspection.overlaps_of", stop)
    hidden = np.maximum(x @ first.T, 0)
    found = op.inspect({"hidden": hidden, "0.weight": first}, targets=y, quick=True)
    assert found.interrupted
    assert {one.name for one in found.layers["hidden"]} >= {"alignment", "dimension"}
    assert "0.weight" in found.spectra
    assert found.network[-1].name == "first of the overlaps"
    assert "interrupted" in str(found)
    monkeypatch.chdir(tmp_path)
    np.savez("acts.npz", hidden=hidden, y=y)
    ended = _run("acts.npz", "--target", "y", "--quick")
    assert ended.exit_code == 130
    assert "interrupted" in ended.stdout
    assert (tmp_path / "results" / "inspect-acts" / "report.html").exists()
    monkeypatch.setattr("orderparam.observables.inspection.numbers_of_layer", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        op.inspect({"hidden": hidden}, targets=y, quick=True)


def _interrupted(*_):
    raise KeyboardInterrupt


def test_dead_layers_and_weights_without_a_spectrum_are_named():
    x = np.random.default_rng(0).normal(size=(30, 4))

    def model(parameters, x):
        return jnp.tanh(x @ parameters[0]) @ parameters[1]

    found = op.inspect(
        model, x, x[:, 0], parameters=(np.zeros((4, 3)), np.zeros((3, 1))), quick=True
    )
    assert any("spectrum of layer 1" in one for one in found.missing)
    rows = {one.name: one for one in found.layers["hidden 1"]}
    assert all(not np.isfinite(one.value) for one in rows.values())
    assert "no unit varies over the examples" in str(found)
    for name in ("alignment", "alignment of the wide network", "dimension"):
        assert "the same for every example" in rows[name].note


def test_a_start_that_is_dead_leaves_the_numbers_of_the_trained_layer():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    late = {"hidden": np.tanh(x @ rng.normal(size=(4, 6)))}
    found = op.inspect(late, targets=x[:, 0], initial={"hidden": np.zeros((30, 6))}, quick=True)
    rows = {one.name: one for one in found.layers["hidden"]}
    for name in ("alignment", "dimension"):
        assert np.isfinite(rows[name].value)
    for name in ("similarity to start", "alignment at the start", "gain of alignment"):
        assert "the same for every example" in rows[name].note


def test_the_figure_has_four_panels(network):
    x, y, first, second = network

    def model(parameters, x):
        return jnp.tanh(x @ parameters[0].T) @ parameters[1]

    start = first, second[0] / 20
    found = op.inspect(
        model, x, y, parameters=(first + 0.01, start[1] + 0.02), initial=start, held_out=(x, y)
    )
    compared = op.compare_with_theory(found)
    titles = [ax.get_title() for ax in found.figure(compared).axes]
    assert titles[0] == "Layers"
    assert titles[1].startswith("layer 1: ")
    assert titles[2].startswith("Tangent kernel: drift ")
    assert titles[3] == "Theories that are not refused"
    trace = found.eigenvalues["now"].sum()
    kernel = tangent_kernel(model, (first + 0.01, start[1] + 0.02), x)
    assert trace == pytest.approx(np.trace(kernel) / len(x))
    assert found.dataset()["kernel_eigenvalues_now"].sum() == pytest.approx(trace)


def test_a_large_network_is_seen_in_random_directions(network, monkeypatch):
    """Where the exact kernel would cost too much: the same number within the sketch's interval."""
    x, y, first, second = network
    moved = (first + 0.5 * np.outer(np.ones(20), first[0]), second[:1])

    def model(parameters, x):
        return jax.nn.relu(x @ parameters[0].T) @ parameters[1].T

    start = (first, second[:1])
    fresh = x[:20], y[:20]
    asked = {"parameters": moved, "initial": start, "held_out": fresh}
    exact = op.inspect(model, x, y, **asked)
    monkeypatch.setattr("orderparam.observables.budget._PRODUCTS", 1.0)
    found = op.inspect(model, x, y, **asked)
    numbers, others = ({one.name: one for one in each.network} for each in (exact, found))
    for name in ("kernel drift", "kernel drift in shape"):
        assert others[name].low < numbers[name].value < others[name].high
        assert "256 random directions" in others[name].note
    assert "lazy-to-rich number" in numbers
    assert any("140 parameters are too many" in one for one in found.missing)


def test_inputs_that_do_not_fit_are_refused_in_one_line():
    """Whatever error the framework has for them."""
    weights = {"w": np.ones((5, 1))}
    with pytest.raises(ValueError, match=r"evaluated on inputs of shape \(50, 4\): ") as raised:
        op.inspect(
            lambda p, x: x @ p["w"], np.ones((50, 4)), np.ones(50), parameters=weights, quick=True
        )
    assert "\n" not in str(raised.value)
