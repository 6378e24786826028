"""Trained networks: order parameters of networks that were trained on data, compared with the
theory of infinite width and with the values that chance gives."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.trained_networks.classifiers.experiment import trained_classifier
    from orderparam.systems.trained_networks.classifiers.model import ImageArchitecture
    from orderparam.systems.trained_networks.classifiers.theory import (
        ClassifierErrors,
        wide_classifier,
    )
    from orderparam.systems.trained_networks.experiment import (
        NetworkOrderParameters,
        inspected_network,
    )
    from orderparam.systems.trained_networks.model import InspectedTraining
    from orderparam.systems.trained_networks.theory import (
        ChanceAlignment,
        WideOrderParameters,
        infinite_width,
        permuted_targets,
    )

LABELS = {
    "richness": ("richness", r"\gamma"),
    "alignment": ("alignment with the target", ""),
    "wide_alignment": ("alignment with the target, many neurons", ""),
    "similarity": ("similarity to the start", ""),
    "lazy_to_rich": ("lazy-to-rich number", r"\Lambda"),
    "kernel_drift": ("drift of the tangent kernel", ""),
    "shape_drift": ("drift of its shape", ""),
    "outliers": ("outliers of the weights", ""),
}

__all__ = exported(globals())
