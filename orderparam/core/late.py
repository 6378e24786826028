"""Functions of SciPy that theories call a few times on the host, imported when they are first
called: `scipy.special` and `scipy.optimize` take half a second of processor to import, which is
longer than most theories take to solve.

>>> from orderparam.core.late import ndtri
>>> float(ndtri(0.5))
0.0
"""

import importlib
from typing import Any


class _Module:
    """A module that is imported when an attribute is first asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


class _Function:
    """A function of a module that is imported when the function is first called."""

    def __init__(self, module: _Module, name: str):
        self._module, self.__name__ = module, name

    def __call__(self, *values: Any, **options: Any) -> Any:
        return getattr(self._module, self.__name__)(*values, **options)


special, optimize = _Module("scipy.special"), _Module("scipy.optimize")

brentq = _Function(optimize, "brentq")
linear_sum_assignment = _Function(optimize, "linear_sum_assignment")
minimize = _Function(optimize, "minimize")
minimize_scalar = _Function(optimize, "minimize_scalar")
nnls = _Function(optimize, "nnls")

comb = _Function(special, "comb")
expit = _Function(special, "expit")
gammaln = _Function(special, "gammaln")
logsumexp = _Function(special, "logsumexp")
ndtr = _Function(special, "ndtr")
ndtri = _Function(special, "ndtri")
roots_legendre = _Function(special, "roots_legendre")
stdtr = _Function(special, "stdtr")
zeta = _Function(special, "zeta")
