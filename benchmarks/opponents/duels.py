"""Every piece of work that the package and an opponent both do."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from opponents import generalised_linear as glm
from opponents import penalised
from opponents.duel import Duel
from orderparam.systems.generalised_linear import (
    GeneralisedLinear,
    PenalisedFit,
    penalised_fit,
    state_evolution,
)


def _signs(prior: str) -> Duel:
    ratios = np.linspace(0.05, 1.4, 100)
    system = GeneralisedLinear(1.0, "sign", prior)
    ours = jax.jit(
        jax.vmap(lambda ratio: state_evolution(system.with_(sample_ratio=ratio)).overlap)
    )
    return Duel(
        f"state evolution of signs, {prior} weights, 100 ratios",
        f"NumPy, {glm.NODES} nodes, iterated together",
        lambda: ours(jnp.asarray(ratios)),
        lambda: glm.signs(ratios, prior == "rademacher"),
    )


def _penalised(loss: str, points: int) -> Duel:
    ridges = np.geomspace(10.0, 0.1, points)
    system = PenalisedFit(2.0, loss, "sign", ridge=0.1)

    def at(ridge: jax.Array) -> jax.Array:
        found = penalised_fit(system.with_(ridge=ridge))
        return jnp.stack([found.teacher_overlap, found.self_overlap, found.response])

    ours = jax.jit(jax.vmap(at))
    theirs = penalised.compiled_hinge() if loss == "hinge" else penalised.logistic
    return Duel(
        f"{loss} loss, {points} ridges",
        "numba, 2 x 40 nodes" if loss == "hinge" else "NumPy, 80 nodes",
        lambda: ours(jnp.asarray(ridges)),
        lambda: theirs(2.0, ridges),
    )


_DUELS = {
    "hinge": lambda: _penalised("hinge", 32),
    "logistic": lambda: _penalised("logistic", 64),
    "state evolution of signs, rademacher weights": lambda: _signs("rademacher"),
    "state evolution of signs, gaussian weights": lambda: _signs("gaussian"),
}


def duels(words: list[str]) -> Iterator[Duel]:
    """Those in whose name one of the words occurs; all of them without words."""
    for name, make in _DUELS.items():
        if not words or any(word in name for word in words):
            try:
                yield make()
            except ImportError as missing:
                print(f"{name}: left out ({missing})")
