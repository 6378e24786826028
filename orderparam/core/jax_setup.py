"""Settings of JAX, made before or after it is imported, and warnings about the installed
version."""

import os
import sys
import warnings
from typing import Any


def jax_setting(name: str) -> Any:
    """A setting of JAX such as `jax_enable_x64`; before JAX is imported the text of its environment
    variable, or None."""
    jax = sys.modules.get("jax")
    return os.environ.get(name.upper()) if jax is None else getattr(jax.config, name)


def set_jax(name: str, value: Any) -> None:
    """Makes a setting of JAX, at once or for the moment when JAX is imported; it is not imported by
    this."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update(name, value)
    elif value is None:
        os.environ.pop(name.upper(), None)
    else:
        os.environ[name.upper()] = str(value)


def warn_of_deadlock() -> None:
    """One warning where programs run on a CPU with jaxlib 0.10.*.

    In that version a batched LAPACK call (Cholesky, eigh, triangular solve under `vmap`) hands its
    batch to the thread pool in which it runs, and waits for it. As many independent calls at once
    as there are threads therefore wait for one another for ever.
    """
    import jaxlib

    first_platform = os.environ.get("JAX_PLATFORMS", "").split(",")[0]
    if jaxlib.__version__.startswith("0.10.") and first_platform in ("", "cpu"):
        warnings.warn(
            f"jaxlib {jaxlib.__version__} can stand still for ever in batched linear algebra on a "
            "CPU: install another version (pip install 'jax!=0.10.*' 'jaxlib!=0.10.*')",
            stacklevel=2,
        )
