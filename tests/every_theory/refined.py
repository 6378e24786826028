"""Values of theories at random legal parameters, as they are or with everything numerical finer.

    python refined.py FOLDER [--refined] [TOPIC ... | THEORY ...]

writes FOLDER/usual or FOLDER/refined, a file for each theory; theories that have theirs are left
out, so that a run that was stopped goes on. Finer is: panels of Gaussian quadrature split in two,
twice as many nodes of every other Gauss-Legendre rule, tolerances of solvers and of options a
hundredth.
"""

import importlib
import inspect
import pickle
import sys
import time
import warnings
import zlib
from functools import wraps
from pathlib import Path

import numpy as np

TOLERANCES, LEAST, FINER = ("tolerance", "rtol", "atol"), 1e-15, 100.0
SOLVERS = {
    "fixed_point": ("fixed_point",),
    "secant": ("secant_fixed_point",),
    "newton": ("newton_fixed_point", "largest_fixed_point"),
    "minimum": ("lbfgs_minimum",),
    "flow": ("flow", "crossing"),
}
DRAWS = 3
_OF_PANELS = (14, 16)  # nodes of the panels, which are split
SECONDS = 60.0  # of a theory and a system; draws that would begin later are left out


def tighter(solver):
    """The solver, with all its tolerances a hundredth of what it is asked for."""
    signature = inspect.signature(solver)

    @wraps(solver)
    def call(*args, **words):
        bound = signature.bind(*args, **words)
        bound.apply_defaults()
        for name in TOLERANCES:
            if isinstance(bound.arguments.get(name), float):
                bound.arguments[name] = max(bound.arguments[name] / FINER, LEAST)
        return solver(*bound.args, **bound.kwargs)

    return call


def refine():
    """Before any theory is imported."""
    quadrature = importlib.import_module("orderparam.gaussian.quadrature")
    panels = quadrature._unit_rule
    quadrature._unit_rule = lambda own, left, right, parts: panels(own, left, right, 2 * parts)
    for module, names in SOLVERS.items():
        loaded = importlib.import_module(f"orderparam.solve.{module}")
        for name in names:
            setattr(loaded, name, tighter(getattr(loaded, name)))
    rule = np.polynomial.legendre.leggauss
    np.polynomial.legendre.leggauss = lambda nodes: rule(
        nodes if nodes in _OF_PANELS else 2 * nodes
    )


def examples(topic):
    """The systems of a topic's tests of every theory, and the options that theories need."""
    checks = importlib.import_module("checks")
    given = []
    checks.checks = lambda *args, **words: given.append((args, words)) or {}
    importlib.import_module(f"test_{topic}")
    for (_, systems, *_), words in given:
        yield systems, words.get("options") or {}, words.get("decades", 2.0)


def values(theory, system, options, refined, decades):
    """(changes, name -> array) of each draw; an empty dictionary where the theory refuses or does
    not believe itself."""
    from checks import draw, flagged

    name = f"{theory.name} {type(system).__name__} refined"
    rng, begin, found = np.random.default_rng(zlib.crc32(name.encode())), time.monotonic(), []
    words = dict(options)
    if refined:
        for option in TOLERANCES:
            default = getattr(theory.options.get(option), "default", None)
            if isinstance(default, float):
                words[option] = default / FINER
    for number in range(DRAWS):
        changes = draw(system, rng, min(decades, 0.5)) if number else {}
        if number and time.monotonic() - begin > SECONDS:
            break
        try:
            result = theory(system.with_(**changes), **words)
        except ValueError:
            found.append((changes, {}, True))
            continue
        kept = {
            field: np.asarray(getattr(result, field))
            for field in type(result).dims()
            if np.issubdtype(np.asarray(getattr(result, field)).dtype, np.floating)
        }
        found.append((changes, kept, flagged(result)))
    return found


def main(folder, refined, words):
    if refined:
        refine()
    sys.path.insert(0, str(Path(__file__).parent))
    warnings.simplefilter("ignore")
    op = importlib.import_module("orderparam")
    target = Path(folder, "refined" if refined else "usual")
    target.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in op.theories() if {name, name.partition(".")[0]} & set(words)]
    for topic in dict.fromkeys(name.partition(".")[0] for name in wanted):
        for systems, options, decades in examples(topic):
            for name in wanted:
                path, theory = target / name, op.theories()[name]
                if not name.startswith(f"{topic}.") or path.exists():
                    continue
                own = options.get(theory.fn.__name__, {})
                fitting = [system for system in systems if isinstance(system, theory.systems)]
                rows = [values(theory, one, own, refined, decades) for one in fitting]
                path.write_bytes(pickle.dumps(rows))


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--refined"]
    main(words[0], "--refined" in sys.argv, words[1:])
