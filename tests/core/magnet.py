"""A paramagnet: the smallest system with a theory, an experiment and its failures, for the tests of
the core."""

import os
import signal
import threading

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, structure
from orderparam.core.verb import experiment, theory


class Paramagnet(System):
    """Independent spins in a field."""

    temperature: float = parameter("temperature", above=0)
    field: float = parameter("magnetic field", default=0.5)
    spins: int = parameter("number of spins", default=400, minimum=1, integer=True)
    shape: str = structure("magnetisation law", default="tanh")


class Magnetisation(Result):
    """Magnetisation per spin, and the occupation of the down and up states."""

    magnetisation: Float[Array, ""]
    occupation: Float[Array, "state"]
    converged: Bool[Array, ""]


@theory
def exact(system: Paramagnet) -> Magnetisation:
    x = system.field / system.temperature
    m = jnp.tanh(x) if system.shape == "tanh" else x
    return Magnetisation(
        magnetisation=m,
        occupation=jnp.stack([1 - m, 1 + m]) / 2,
        converged=jnp.asarray(system.temperature > 0.2),
    )


@experiment
def sampled(system: Paramagnet, key: jax.Array) -> Magnetisation:
    up = jax.nn.sigmoid(2 * system.field / system.temperature)
    m = 2 * jax.random.bernoulli(key, up, (int(system.spins),)).mean() - 1
    return Magnetisation(
        magnetisation=m, occupation=jnp.stack([1 - m, 1 + m]) / 2, converged=jnp.asarray(True)
    )


@experiment
def failing_at_two(system: Paramagnet, key: jax.Array) -> Magnetisation:
    if system.temperature == 2.0:
        raise RuntimeError("no spins left")
    return sampled(system, key)


@experiment
def killing_its_process_once(system: Paramagnet, key: jax.Array) -> Magnetisation:
    """Kills the process it runs in the first time it meets temperature 2 (a file remembers)."""
    marker = os.environ["ORDERPARAM_TEST_MARKER"]
    if system.temperature == 2.0 and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return sampled(system, key)


@experiment
def always_killing(system: Paramagnet, key: jax.Array) -> Magnetisation:
    if system.temperature == 2.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return sampled(system, key)


@experiment
def counted(system: Paramagnet, key: jax.Array) -> Magnetisation:
    """Writes a line to a log for each evaluation, so that a test can count them."""
    with open(os.environ["ORDERPARAM_TEST_LOG"], "a") as log:
        log.write(f"{system.temperature} {jax.random.key_data(key).tolist()}\n")
    return sampled(system, key)


def unhurried(system: Paramagnet, key: jax.Array) -> Magnetisation:
    """Takes as many seconds as ORDERPARAM_TEST_SECONDS says; where there is a log it is counted,
    and where there is a file ORDERPARAM_TEST_BEGUN it writes there, as it begins, its process
    before the line that will count it."""
    if "ORDERPARAM_TEST_BEGUN" in os.environ:
        with open(os.environ["ORDERPARAM_TEST_BEGUN"], "a") as begun:
            begun.write(f"{os.getpid()} {system.temperature} {jax.random.key_data(key).tolist()}\n")
    # time.sleep is an error under libfaketime, with which an attack sets the clock
    threading.Event().wait(float(os.environ.get("ORDERPARAM_TEST_SECONDS", "0")))
    return counted(system, key) if "ORDERPARAM_TEST_LOG" in os.environ else sampled(system, key)


def shouting(system: Paramagnet, key: jax.Array) -> Magnetisation:
    print("an experiment speaks", flush=True)
    return sampled(system, key)


class Homebound(Paramagnet):
    """Cannot be unpickled in another process."""

    def __reduce__(self):
        return _only_in, (os.getpid(),)


def _only_in(pid: int) -> Paramagnet:
    if os.getpid() != pid:
        raise RuntimeError("only here")
    return Paramagnet(1.0)


@experiment
def misshapen(system: Paramagnet, key: jax.Array) -> Magnetisation:
    """Returns a number where an array is declared."""
    m = sampled(system, key).magnetisation
    return Magnetisation(magnetisation=m, occupation=m, converged=jnp.asarray(True))
