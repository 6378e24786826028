"""The same network in Equinox, Flax NNX and PyTorch has the same order parameters.

Each test is skipped where PyTorch or Flax is not installed.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op

WIDTH, INPUTS = 12, 6


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def nnx():
    pytest.importorskip("flax")
    return pytest.importorskip("flax.nnx")


def _dense(seed, scale=1.0):
    """Weights (out, in) and biases of a network with two hidden layers."""
    rng = np.random.default_rng(seed)
    sizes = (INPUTS, WIDTH, WIDTH, 1)
    return [
        (scale * rng.normal(size=(b, a)) / a**0.5, 0.1 * rng.normal(size=b))
        for a, b in itertools.pairwise(sizes)
    ]


def _in_equinox(layers):
    mlp = eqx.nn.MLP(INPUTS, 1, WIDTH, 2, key=jax.random.key(0))
    for k, (weight, bias) in enumerate(layers):
        mlp = eqx.tree_at(
            lambda m, k=k: (m.layers[k].weight, m.layers[k].bias),
            mlp,
            (jnp.asarray(weight), jnp.asarray(bias)),
        )
    return mlp


def _in_torch(torch, layers):
    parts = []
    for weight, bias in layers:
        linear = torch.nn.Linear(*weight.shape[::-1]).double()
        with torch.no_grad():
            linear.weight[:] = torch.as_tensor(weight)
            linear.bias[:] = torch.as_tensor(bias)
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def _in_flax(nnx, layers):
    class Dense(nnx.Module):
        def __init__(self, rngs):
            sizes = [weight.shape for weight, _ in layers]
            self.first, self.second, self.last = (
                nnx.Linear(b, a, param_dtype=jnp.float64, rngs=rngs) for a, b in sizes
            )

        def __call__(self, x):
            return self.last(nnx.relu(self.second(nnx.relu(self.first(x)))))

    module = Dense(nnx.Rngs(0))
    for part, (weight, bias) in zip((module.first, module.second, module.last), layers):
        part.kernel[...] = jnp.asarray(weight.T)
        part.bias[...] = jnp.asarray(bias)
    return module


def _numbers(found):
    sections = (*found.layers.values(), *found.weights.values(), found.network)
    return [
        (
            one.name.partition(",")[0],
            value,
        )  # behind the comma the layer's name, the framework's own
        for part in sections
        for one in part
        for value in (one.value, one.low, one.high, one.p_value)
    ]


def _same(found, other):
    first, second = _numbers(found), _numbers(other)
    assert [name for name, _ in first] == [name for name, _ in second]
    assert len(first) > 60
    for (name, value), (_, again) in zip(first, second):
        assert again == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), name


def _data(count=40):
    x = np.random.default_rng(5).normal(size=(count, INPUTS))
    return x, np.sign(x[:, 0] * x[:, 1])


def _all_of(make):
    x, y = _data()
    fresh = _data(60)
    start = _dense(1)
    moved = [(weight + 0.1 * change, bias) for (weight, bias), (change, _) in zip(start, _dense(2))]
    # a training error below that of the start, as after training
    late = (moved[-1][0] * 0.5, moved[-1][1] * 0.5)
    end = [*moved[:-1], late]
    return op.inspect(
        make(end), x, y, initial=make(start), held_out=(fresh[0][40:], fresh[1][40:]),
        seeds=[make(_dense(3))],
    )  # fmt: skip


def test_a_dense_network_in_equinox_and_pytorch(torch):
    first = _all_of(_in_equinox)
    names = [one.name for one in first.network]
    assert "kernel drift" in names
    assert "lazy-to-rich number" in names
    _same(first, _all_of(lambda layers: _in_torch(torch, layers)))


def test_the_largest_curvature_in_equinox_and_pytorch(torch):
    x, y = _data()
    found = []
    for make in (_in_equinox, lambda layers: _in_torch(torch, layers)):
        seen = op.inspect(
            make(_dense(1)), x, y, initial=make(_dense(2)), rate=0.01, quick=True
        )  # fmt: skip
        found.append([one for one in seen.network if one.name.startswith("largest curvature")])
    assert len(found[0]) == len(found[1]) == 2
    for ours, theirs in zip(*found):
        assert theirs.value == pytest.approx(ours.value, rel=1e-4)
        assert theirs.high - theirs.low < 1e-6 * theirs.value
        assert ours.low - 1e-9 <= theirs.value <= ours.high + 1e-9


def test_a_dense_network_in_equinox_and_flax(nnx):
    _same(_all_of(_in_equinox), _all_of(lambda layers: _in_flax(nnx, layers)))


def test_a_dense_network_in_equinox_and_flax_linen(nnx):
    linen = pytest.importorskip("flax.linen")
    x, y = _data()

    class Dense(linen.Module):
        @linen.compact
        def __call__(self, x):
            for k, size in enumerate((WIDTH, WIDTH, 1)):
                x = linen.Dense(size, name=f"layer{k}", param_dtype=jnp.float64)(x)
                x = linen.relu(x) if k < 2 else x
            return x

    def variables(layers):
        return {
            "params": {
                f"layer{k}": {"kernel": weight.T, "bias": bias}
                for k, (weight, bias) in enumerate(layers)
            }
        }

    expected = op.inspect(_in_equinox(_dense(1)), x, y, initial=_in_equinox(_dense(2)))
    found = op.inspect(Dense(), x, y, parameters=variables(_dense(1)), initial=variables(_dense(2)))
    _same(expected, found)
    with pytest.raises(ValueError, match="needs its variables"):
        op.inspect(Dense(), x, y)


class _Convolutional(eqx.Module):
    conv: eqx.nn.Conv2d
    out: eqx.nn.Linear

    def __call__(self, x):
        return self.out(jax.nn.relu(self.conv(x)).mean(axis=(1, 2)))


def _images():
    x = np.random.default_rng(0).normal(size=(30, 2, 6, 6))
    return x, np.sign(x[:, 0, 0, 0])


def _convolutional():
    keys = jax.random.split(jax.random.key(1))
    net = _Convolutional(eqx.nn.Conv2d(2, 5, 3, key=keys[0]), eqx.nn.Linear(5, 3, key=keys[1]))
    return jax.tree.map(lambda leaf: leaf.astype(float) if eqx.is_array(leaf) else leaf, net)


def test_a_convolutional_network_in_equinox_and_pytorch(torch):
    net = _convolutional()
    x, y = _images()

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 5, 3).double()
            self.out = torch.nn.Linear(5, 3).double()

        def forward(self, x):
            return self.out(torch.relu(self.conv(x)).mean(dim=(2, 3)))

    other = Pooled()
    with torch.no_grad():
        for part, ours in ((other.conv, net.conv), (other.out, net.out)):
            part.weight[:] = torch.as_tensor(np.array(ours.weight))
            part.bias[:] = torch.as_tensor(np.array(ours.bias)).reshape(-1)
    start = [jax.tree.map(lambda leaf: leaf + 0.1 if eqx.is_array(leaf) else leaf, net)]
    ours = op.inspect(net, x, y, initial=start[0])
    with torch.no_grad():
        before = Pooled()
        for new, old in zip(before.parameters(), other.parameters()):
            new[:] = old + 0.1
    _same(ours, op.inspect(other, x, y, initial=before))


def test_a_convolutional_network_in_equinox_and_flax(nnx):
    net = _convolutional()
    x, y = _images()

    class Pooled(nnx.Module):
        def __init__(self, rngs, shift=0.0):
            self.conv = nnx.Conv(2, 5, (3, 3), padding="VALID", param_dtype=jnp.float64, rngs=rngs)
            self.out = nnx.Linear(5, 3, param_dtype=jnp.float64, rngs=rngs)
            self.conv.kernel[...] = jnp.transpose(net.conv.weight, (2, 3, 1, 0)) + shift
            self.conv.bias[...] = net.conv.bias.reshape(-1) + shift
            self.out.kernel[...] = net.out.weight.T + shift
            self.out.bias[...] = net.out.bias + shift

        def __call__(self, x):
            return self.out(nnx.relu(self.conv(x)).mean(axis=(1, 2)))

    start = jax.tree.map(lambda leaf: leaf + 0.1 if eqx.is_array(leaf) else leaf, net)
    ours = op.inspect(net, x, y, initial=start)
    last = np.moveaxis(x, 1, -1)
    _same(
        ours,
        op.inspect(Pooled(nnx.Rngs(0)), last, y, initial=Pooled(nnx.Rngs(0), shift=0.1)),
    )


def test_the_mode_of_a_module_is_restored_and_dropout_is_off(torch):
    x, y = _data()
    module = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Dropout(),
        torch.nn.Linear(WIDTH, 1),
    )
    module[1].eval()
    modes = [part.training for part in module.modules()]
    found = op.inspect(module, x, y, quick=True)
    assert [part.training for part in module.modules()] == modes
    assert "hidden 1" in found.layers


def test_single_precision_of_pytorch_agrees_to_its_rounding(torch):
    x, y = _data()
    double = op.inspect(_in_torch(torch, _dense(1)), x, y, quick=True)
    single = op.inspect(_in_torch(torch, _dense(1)).float(), x, y, quick=True)
    for name, numbers in double.layers.items():
        for one, other in zip(numbers, single.layers[name]):
            assert other.value == pytest.approx(one.value, rel=1e-5, nan_ok=True)


def test_parameters_of_pytorch_come_from_a_file(torch, tmp_path):
    save = pytest.importorskip("safetensors.torch").save_file
    x, y = _data()
    trained, start = _in_torch(torch, _dense(1)), _in_torch(torch, _dense(2))
    save(trained.state_dict(), tmp_path / "net.safetensors")
    save(start.state_dict(), tmp_path / "start.safetensors")
    expected = op.inspect(trained, x, y, initial=start)
    _same(
        expected,
        op.inspect(
            start, x, y, parameters=tmp_path / "net.safetensors",
            initial=tmp_path / "start.safetensors",
        ),
    )  # fmt: skip
    torch.save(trained.state_dict(), tmp_path / "net.pt")
    with pytest.raises(ValueError, match="pt"):
        op.inspect(start, x, y, parameters=tmp_path / "net.pt")
    wrong = {"0.weight": np.ones((2, 2))}
    with pytest.raises(ValueError, match="parameters: "):
        op.inspect(start, x, y, parameters=wrong)
