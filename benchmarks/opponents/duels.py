"""Every piece of work that the package and an opponent both do."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from opponents import generalised_linear as glm
from opponents.duel import Duel
from orderparam.systems.generalised_linear import GeneralisedLinear, state_evolution


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


_DUELS = {
    "state evolution of signs, rademacher weights": lambda: _signs("rademacher"),
    "state evolution of signs, gaussian weights": lambda: _signs("gaussian"),
}


def duels(words: list[str]) -> Iterator[Duel]:
    """Those in whose name one of the words occurs; all of them without words."""
    for name, make in _DUELS.items():
        if not words or any(word in name for word in words):
            yield make()
