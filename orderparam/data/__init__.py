"""Real data sets, the learning problems posed on them, and their preprocessing.

from orderparam.data import apply_task, centre, load, normalise

pool, targets = apply_task(load("digits"), "3-vs-8")
pool = normalise(centre(pool))
x, y = pool.inputs, targets.values
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.data.dataset import Dataset
    from orderparam.data.files import load_file
    from orderparam.data.locate import DataNotFound
    from orderparam.data.preprocess import (
        centre,
        normalise,
        scale_pixels,
        standardise,
        standardise_columns,
    )
    from orderparam.data.standard import DATASETS, load
    from orderparam.data.subsample import subsample
    from orderparam.data.tasks import (
        Targets,
        apply_task,
        binary,
        one_hot,
        one_vs_rest,
        parity,
        regression,
    )

__all__ = exported(globals())
