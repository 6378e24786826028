"""Diffusion models: the times at which a backward trajectory chooses a class and a training
example, and the training time at which a learned score memorises."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
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
    from orderparam.systems.diffusion.score_experiment import (
        DrawnLosses,
        DrawnTimes,
        drawn_score,
        drawn_score_spectrum,
        drawn_score_times,
        trained_score,
    )
    from orderparam.systems.diffusion.score_model import FeatureScore
    from orderparam.systems.diffusion.score_spectrum import ScoreSpectrum, score_spectrum
    from orderparam.systems.diffusion.score_theory import (
        ScoreLosses,
        ScoreTimes,
        score_losses,
        score_times,
    )
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
    "train_loss": ("training loss of the score", ""),
    "test_loss": ("test loss of the score", ""),
    "training_time": ("training time", r"\tau"),
    "best_time": ("time of the smallest test loss", ""),
    "memorisation_time": ("time of half the gap", ""),
    "waiting": ("memorisation time / best time", ""),
    "best_loss": ("smallest test loss", ""),
    "end_loss": ("test loss at the end", ""),
    "end_train_loss": ("training loss at the end", ""),
    "smallest": ("smallest eigenvalue above v^2", ""),
    "gap_start": ("upper edge of the lower bulk", ""),
    "gap_end": ("lower edge of the upper bulk", ""),
    "largest": ("largest eigenvalue", ""),
    "frozen_share": ("share of equal eigenvalues", ""),
    "density": ("density of ln x", ""),
    "sample_ratio": ("examples over dimension", "n/d"),
    "feature_ratio": ("features over dimension", "p/d"),
}

__all__ = exported(globals())
