"""That `jax.grad`, `jax.vmap` and `jax.jit` over a theory do what they should, in one compiled
program."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

STEP = 1e-4  # of the logarithm of all numbers that are moved
ROUNDING = 1e-13  # an observable that is no larger is zero


@dataclasses.dataclass
class Path:
    """A line through a system: every real number that may be moved is multiplied by exp(rate t),
    each at a rate of its own."""

    system: object
    rates: dict
    values: dict

    @classmethod
    def through(cls, system, numbers):
        rng = np.random.default_rng(0)
        values = {
            path: value
            for path, value, declaration in numbers
            if value and np.isfinite(value) and not declaration.integer
        }
        made = cls(system, {path: rng.uniform(0.5, 1.0) for path in values}, values)
        made.values = {path: value for path, value in values.items() if made._may_move(path)}
        return made

    def _may_move(self, path):
        try:
            for t in (-0.01, 0.01):
                self.system.with_(**{path: self.values[path] * float(np.exp(self.rates[path] * t))})
        except ValueError:
            return False
        return True

    def at(self, t):
        return self.system.with_(
            **{path: value * jnp.exp(self.rates[path] * t) for path, value in self.values.items()}
        )


def observables(result):
    """Names of the real fields that are physics and not the bookkeeping of a solver."""
    kinds = {name: np.asarray(getattr(result, name)).dtype for name in type(result).dims()}
    return [
        name
        for name, kind in kinds.items()
        if np.issubdtype(kind, np.floating) and name not in ("residual", "steps")
    ]


def wrong_derivatives(theory, path, words, flagged):
    """What is wrong, in words; None where nothing can be said: no number moves, or the theory does
    not stand by its answer.

    One program, `jit(vmap(value_and_grad))` over two points of the path (without the gradient where
    none is claimed), against calls of the theory at single points: the value there to 1e-7, the
    slope by central differences to 1e-3 of value and slope. Value is a sum over all observables,
    each over its usual size. Where differences disagree with those of twice the step (a singular
    point, a jump, noise) nothing is said of the slope.
    """
    usual = theory(path.system, **words)
    if not path.values or flagged(usual):
        return None
    shares = {}
    for name in observables(usual):
        entries = np.asarray(getattr(usual, name))
        known = np.isfinite(entries)
        size = np.max(np.abs(entries), initial=0.0, where=known)
        if size > ROUNDING:
            shares[name] = np.where(
                known, np.cos(1.0 + np.arange(entries.size)).reshape(entries.shape) / size, 0.0
            )

    def value(t):
        result = theory(path.at(t), **words)
        parts = (
            jnp.sum(jnp.where(share != 0, getattr(result, name), 0.0) * share)
            for name, share in shares.items()
        )
        return sum(parts, jnp.zeros(()))

    points = jnp.asarray([0.0, 30 * STEP])
    found = jax.jit(
        jax.vmap(jax.value_and_grad(value) if theory.differentiable else lambda t: (value(t), t))
    )(points)
    wrong, conclusive = [], not theory.differentiable
    for t, together, slope in zip(points.tolist(), *(part.tolist() for part in found)):
        if any(flagged(theory(path.at(t + k * STEP), **words)) for k in (-2, -1, 0, 1, 2)):
            continue
        alone = {k: float(value(t + k * STEP)) for k in (-2, -1, 0, 1, 2)}
        if not np.isclose(together, alone[0], rtol=1e-7, atol=1e-9):
            wrong.append(f"{alone[0]} alone and {together} in a batch")
        coarse, fine = ((alone[k] - alone[-k]) / (2 * k * STEP) for k in (2, 1))
        size = abs(alone[0]) + abs(fine)
        if theory.differentiable and abs(fine - coarse) <= 0.01 * size:
            conclusive = True
            if not abs(slope - fine) <= 1e-3 * size + 5 * abs(fine - coarse) + 1e-9:
                wrong.append(f"slope {slope}, by differences {fine}")
    return "; ".join(wrong) if wrong or conclusive else None
