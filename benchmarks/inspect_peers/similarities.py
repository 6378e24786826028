"""Similarity of two layers: independent ones (truth 0), relu features of one kernel (truth 1 in the
limit of many neurons), and linear features of two kernels (truth in closed form, in the same
limit).
"""

import numpy as np

from inspect_peers.contest import Answer, Contest, Package
from orderparam.observables import similarity

EXAMPLES, INPUTS = 256, 20
DECAY = 1 / np.arange(1, 31.0)
ROLLED = np.roll(DECAY, 1)
TRUE = float(DECAY @ ROLLED / (DECAY @ DECAY))


def _independent(width: int):
    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = np.random.default_rng(seed).normal(size=(2, EXAMPLES, width))
        return x, y

    return draw


def _relu(width: int):
    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(EXAMPLES, INPUTS))
        x, y = (np.maximum(z @ rng.normal(size=(INPUTS, width)), 0) for _ in range(2))
        return x, y

    return draw


def _linear(width: int):
    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(EXAMPLES, 30))
        x, y = (
            z @ (np.sqrt(one)[:, None] * rng.normal(size=(30, width))) for one in (DECAY, ROLLED)
        )
        return x, y

    return draw


def _ours(estimand: str):
    def measure(x: np.ndarray, y: np.ndarray) -> Answer:
        found = similarity(x, y, estimand=estimand, draws=199)
        return Answer(found.value, found.low, found.high, found.p_value <= 0.05)

    return measure


def _these(x: np.ndarray, y: np.ndarray) -> Answer:
    """The interval is for these two layers, of which the truth of many neurons is not the value."""
    return Answer(similarity(x, y, draws=0).value)


def _plain(x: np.ndarray, y: np.ndarray) -> Answer:
    """Linear CKA as it is mostly computed, without any correction."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    top = np.sum((x.T @ y) ** 2)
    return Answer(float(top / np.sqrt(np.sum((x.T @ x) ** 2) * np.sum((y.T @ y) ** 2))))


def _torch_cka(x: np.ndarray, y: np.ndarray) -> Answer:
    import torch
    from torch_cka import CKA

    class Given(torch.nn.Module):
        """A module whose one layer multiplies by a matrix: its outputs are the activations."""

        def __init__(self, weight: np.ndarray) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(len(weight), weight.shape[1], bias=False)
            self.layer.weight.data = torch.as_tensor(weight.T.copy(), dtype=torch.float32)

        def forward(self, rows):
            return self.layer(rows)

    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.eye(len(x)), torch.zeros(len(x))), batch_size=len(x)
    )
    compared = CKA(Given(x), Given(y), device="cpu")
    compared.compare(loader)
    return Answer(float(compared.export()["CKA"][0, 0]))


def _netrep_cka(x: np.ndarray, y: np.ndarray) -> Answer:
    from netrep.metrics import LinearCKA

    return Answer(float(np.cos(LinearCKA().score(x, y))))  # it returns the angle


def _netrep_procrustes(x: np.ndarray, y: np.ndarray) -> Answer:
    from netrep.metrics import LinearMetric

    metric = LinearMetric(alpha=1.0, score_method="angular")
    return Answer(float(np.cos(metric.fit_score(x, y))))


NEURONS = Package(_ours("neurons"), "orderparam", "many neurons")
AS_THEY_ARE = Package(_ours("examples"), "orderparam", "as they are")
THESE = Package(_these, "orderparam", "as they are", interval="of these two")
OTHERS = (
    Package(_torch_cka, "torch-cka", modules=("torch", "torch_cka")),
    Package(_netrep_cka, "netrep", "cosine of LinearCKA", ("netrep",)),
    Package(_plain, "linear CKA by hand"),
)
# another measure, with the same value for independent layers and for layers of one kernel
PROCRUSTES = Package(_netrep_procrustes, "netrep", "cosine of LinearMetric", ("netrep",))


def contests() -> list[Contest]:
    return [
        *(
            Contest(
                "similarity", f"independent layers of {width}", _independent(width),
                lambda x, y: 0.0, (AS_THEY_ARE, *OTHERS, PROCRUSTES), nothing=True,
            )
            for width in (16, 128)
        ),
        *(
            Contest(
                "similarity", f"relu features, {width}", _relu(width),
                lambda x, y: 1.0, (NEURONS, THESE, *OTHERS, PROCRUSTES),
            )
            for width in (16, 128)
        ),
        *(
            Contest(
                "similarity", f"linear features, {width}", _linear(width),
                lambda x, y: TRUE, (NEURONS, THESE, *OTHERS),
            )
            for width in (16, 128)
        ),
    ]  # fmt: skip
