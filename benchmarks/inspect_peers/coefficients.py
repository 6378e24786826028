"""The local learning coefficient of reduced-rank regression at the true map 0, with the unit
Gaussian prior about it, at t = n / ln n for n = 1000: its exact value is known at every t. Inputs
are whitened, so that the loss is |B A|^2 / 2 exactly for any number of them."""

import numpy as np
from scipy import stats

from inspect_peers.contest import Answer, Contest, Package
from orderparam.observables import learning_coefficient
from orderparam.observables.reduced_rank import running_coefficient

TIME = 1000 / np.log(1000)
EXAMPLES = 50
CASES = (5, 3, 5), (5, 1, 5)  # inputs, hidden units, outputs
CHAINS, DRAWS, BURN_IN = 4, 1000, 500
STEPS = (1e-4, 1e-3, 1e-2)  # of SGLD


def _whitened(seed: int, inputs: int) -> np.ndarray:
    """Inputs with the covariance 1."""
    x = np.random.default_rng(seed).normal(size=(EXAMPLES, inputs))
    return x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / EXAMPLES)).T


def _ours(sizes: tuple[int, int, int]):
    import jax.numpy as jnp

    inputs, hidden, outputs = sizes

    def measure(x: np.ndarray, seed: int) -> Answer:
        def loss(weights):
            a, b = weights
            return jnp.sum((x @ a.T @ b.T) ** 2) / (2 * EXAMPLES)

        at_zero = jnp.zeros((hidden, inputs)), jnp.zeros((outputs, hidden))
        found = learning_coefficient(
            loss, at_zero, times=(1, 10, TIME, 1000), draws=DRAWS, seed=seed
        )
        one = found.energy[2]
        return Answer(one.value, one.low, one.high)

    return measure


def _devinterp(sizes: tuple[int, int, int], step: float):
    """Its chains with the loss of this model; the interval is Student's over its chains, which it
    gives without one."""
    inputs, hidden, outputs = sizes

    def measure(x: np.ndarray, seed: int) -> Answer:
        import torch
        from datasets import Dataset
        from devinterp.slt.llc import llc

        model = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden, bias=False),
            torch.nn.Linear(hidden, outputs, bias=False),
        )
        for weight in model.parameters():
            torch.nn.init.zeros_(weight)
        rows = torch.as_tensor(x, dtype=torch.float32)

        def loss(model, places):  # an example is the number of its row
            return 0.5 * (model(rows[places[:, 0]]) ** 2).sum(dim=1, keepdim=True)

        data = Dataset.from_dict({"input_ids": [[k, 0] for k in range(EXAMPLES)]})
        data = data.with_format("torch")
        found = llc(
            model, data, {}, lr=step, n_beta=TIME, localization=1.0, num_chains=CHAINS,
            num_draws=DRAWS, num_burnin_steps=BURN_IN, batch_size=EXAMPLES, num_init_loss_batches=1,
            init_seed=seed, loss_fn=loss, device="cpu",
        )  # fmt: skip
        each = np.asarray(found.loss_trace)[:, BURN_IN:].mean(axis=1) * TIME
        half = stats.t.ppf(0.975, CHAINS - 1) * stats.sem(each)
        return Answer(float(each.mean()), float(each.mean() - half), float(each.mean() + half))

    return measure


def contests() -> list[Contest]:
    return [
        Contest(
            "learning coefficient", f"reduced rank {sizes}",
            lambda seed, sizes=sizes: (_whitened(seed, sizes[0]), seed),
            lambda x, seed, sizes=sizes: running_coefficient(*sizes, TIME),
            (
                Package(_ours(sizes), "orderparam"),
                *(
                    Package(
                        _devinterp(sizes, step), "devinterp", f"SGLD, step {step:g}",
                        ("torch", "devinterp", "datasets"),
                    )
                    for step in STEPS
                ),
            ),
            repeats=5,
        )
        for sizes in CASES
    ]  # fmt: skip
