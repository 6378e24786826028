"""A study: a named, runnable figure. Its theories and its experiments on one grid, and how far they
are apart.

Reading order: `curve`, `registry`, `comparison`, `summary`, `files`, `run`.
"""

from orderparam.core.study.comparison import Comparison
from orderparam.core.study.curve import Curve, between
from orderparam.core.study.files import load
from orderparam.core.study.registry import Study, find, studies, study
from orderparam.core.study.run import compare
