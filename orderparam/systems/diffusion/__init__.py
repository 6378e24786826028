"""Diffusion models: when a class, and when a training example, is chosen."""

from orderparam.core.exported import without_modules
from orderparam.systems.diffusion.experiment import (
    ClonedClasses,
    HalfTime,
    ReturnedWeights,
    cloned_classes,
    drawn_weights,
    half_weight_time,
    returned_trajectories,
)
from orderparam.systems.diffusion.model import StoredData, StoredGaussians, TwoClasses
from orderparam.systems.diffusion.theory import (
    DataTimes,
    ExampleWeight,
    Speciation,
    data_times,
    own_weight,
    speciation,
)

LABELS = {
    "same_class": ("probability that clones end in one class", ""),
    "class_signal": ("what is left of the classes' distance", "s"),
    "speciation_time": ("speciation time", "t_S"),
    "own_weight": ("weight of the own example", "w"),
    "collapse_time": ("collapse time", "t_C"),
    "isotropic_time": ("collapse time of isotropic data", ""),
    "excess_entropy": ("information less ln n, over d", ""),
    "time": ("time of the diffusion", "t"),
    "class_share": ("share of the first class", r"\pi"),
    "n_train": ("stored examples", "n"),
}

__all__ = without_modules(globals())
