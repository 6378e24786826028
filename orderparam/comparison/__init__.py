"""A study: a named, runnable figure. Its theories and its experiments on one grid, and how far they
are apart.

Reading order: `curve`, `registry`, `comparison`, `summary`, `files`, `run`.
"""

from orderparam.comparison.comparison import Comparison
from orderparam.comparison.curve import Curve, between
from orderparam.comparison.files import load
from orderparam.comparison.registry import Study, find, studies, study
from orderparam.comparison.run import compare
