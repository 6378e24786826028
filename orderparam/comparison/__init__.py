"""Studies: a study is a named, runnable figure with its theories and its experiment on one grid,
and the difference between them.

Reading order: `curve`, `registry`, `comparison`, `summary`, `files`, `run`.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.comparison.comparison import Comparison
    from orderparam.comparison.curve import Curve, between
    from orderparam.comparison.files import load
    from orderparam.comparison.registry import Study, find, studies, study
    from orderparam.comparison.run import compare

__all__ = exported(globals())
