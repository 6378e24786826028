"""What is to be said about the installed JAX before it is used."""

import os
import warnings


def warn_of_deadlock() -> None:
    """One warning where programs run on a CPU with jaxlib 0.10.*.

    There a batched LAPACK call (Cholesky, eigh, triangular solve under `vmap`) hands its batch to the thread pool that it runs in
    and waits for it: as many independent ones at once as there are threads wait for one another for ever.
    """
    import jaxlib

    first_platform = os.environ.get("JAX_PLATFORMS", "").split(",")[0]
    if jaxlib.__version__.startswith("0.10.") and first_platform in ("", "cpu"):
        warnings.warn(
            f"jaxlib {jaxlib.__version__} can stand still for ever in batched linear algebra on a CPU: "
            "install another version (pip install 'jax!=0.10.*' 'jaxlib!=0.10.*')",
            stacklevel=2,
        )
