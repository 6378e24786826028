"""orderparam: the statistical physics of learning in neural networks, theory and measurement side
by side.

    import orderparam as op

Everything below is imported on first use, so that `import orderparam` costs nothing, not even JAX.
It switches JAX to float64 and to full products in float32, and keeps compiled programs on disk
(`orderparam.core.compilation_cache`).
"""

import importlib
from typing import Any

from orderparam.core.compilation_cache import keep_programs
from orderparam.core.jax_setup import jax_setting, set_jax, warn_of_deadlock
from orderparam.core.on_demand import on_demand

__version__ = "0.1.0"

set_jax("jax_enable_x64", True)
# Otherwise some accelerators multiply float32 matrices with 10 bits of mantissa.
if jax_setting("jax_default_matmul_precision") is None:
    set_jax("jax_default_matmul_precision", "highest")
warn_of_deadlock()
keep_programs(__version__)

_NAMES = {
    "Curve": "comparison",
    "Panel": "plotting",
    "Result": "core.result",
    "Study": "comparison",
    "System": "core.system",
    "assess_design": "systems.generalised_linear.own_design",
    "collapse": "analysis",
    "compare": "comparison",
    "compare_with_theory": "observables.theory_comparison",
    "experiment": "core.verb",
    "experiments": "core.registry",
    "exponent": "analysis",
    "forecast": "learning_curves",
    "inspect": "observables.inspection",
    "load": "comparison",
    "parameter": "core.fields",
    "part": "core.fields",
    "phase_diagram": "analysis",
    "plot": "plotting",
    "scaling_law": "analysis.scaling_law",
    "structure": "core.fields",
    "studies": "comparison",
    "study": "comparison",
    "sweep": "running.sweep",
    "theories": "core.registry",
    "theory": "core.verb",
    "transition": "analysis",
    "width": "observables.width_transfer",
}
_package, _packages = on_demand(__name__, __path__)
__all__ = ["__version__", *_NAMES, *_packages()]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"orderparam.{_NAMES[name]}"), name)
    return _package(name)


def __dir__() -> list[str]:
    return sorted(__all__)
