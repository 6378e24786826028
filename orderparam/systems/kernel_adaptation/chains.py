"""How many Markov chains there must be."""

from orderparam.core.system import System


def check_chains(system: System, chains: int = 2, **_: object) -> None:
    """`ValueError` unless as many chains can start in one way as in the other."""
    if chains < 2 or chains % 2:
        raise ValueError(f"chains = {chains}: must be even and at least 2")
