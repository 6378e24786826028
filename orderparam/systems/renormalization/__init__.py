"""Renormalization-group flows of learning problems and of magnets, compared with measurements.

In the order of reading:

    decimation/   kernel regression with its modes integrated out one by one: ridge, noise, error
    wilsonian/    regression with a loss that is not quadratic: functional flow, rescaled couplings,
                  sampled posteriors
    magnet/       the magnet: epsilon expansion, flow of the potential, bond moving, block spins
    studies.py    the number of samples as a finite size: learning and the magnet collapse alike
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.renormalization.decimation.experiment import (
        MeasuredRegression,
        regression,
    )
    from orderparam.systems.renormalization.decimation.model import (
        DecimatedPool,
        DecimatedRegression,
    )
    from orderparam.systems.renormalization.decimation.theory import (
        DecimatedCurve,
        DecimationFlow,
        RunningRidge,
        decimated,
        decimation_flow,
        running_ridge,
    )
    from orderparam.systems.renormalization.magnet.experiment import MeasuredBlocks, block_spins
    from orderparam.systems.renormalization.magnet.model import (
        EXACT_COUPLING,
        Bonds,
        SpinBlocks,
        VectorMagnet,
    )
    from orderparam.systems.renormalization.magnet.theory import (
        BondFlow,
        BondPoint,
        EpsilonExpansion,
        LocalPotential,
        OneLoopPoint,
        bond_flow,
        bond_point,
        epsilon_expansion,
        local_potential,
        one_loop_point,
    )
    from orderparam.systems.renormalization.wilsonian.couplings import (
        CouplingFlow,
        ScalingInterval,
        SphericalPoint,
        coupling_flow,
        scaling_interval,
        spherical_point,
    )
    from orderparam.systems.renormalization.wilsonian.experiment import (
        SampledModes,
        sampled_modes,
        sampled_regression,
    )
    from orderparam.systems.renormalization.wilsonian.losses import (
        HuberLoss,
        LossCorrection,
        loss_correction,
        measured_loss_correction,
    )
    from orderparam.systems.renormalization.wilsonian.model import (
        EvenLoss,
        InteractingPool,
        InteractingRegression,
        ScaleFreeRegression,
    )
    from orderparam.systems.renormalization.wilsonian.theory import (
        FunctionalFlow,
        Gap,
        characteristic_flow,
        gap_equation,
        recursive_flow,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "length": ("length", "L"),
    "neighbour_coupling": ("coupling of neighbours", "K_1"),
    "correction": ("change of the error by the loss", r"Q/Q_0-1"),
    "cut": ("modes kept", r"\Lambda"),
    "exact_ridge": ("ridge", r"T(\Lambda)"),
    "fluctuation": ("posterior variance", ""),
    "frozen": ("modes learned", "k_h"),
    "non_gaussianity": ("non-Gaussianity", "g"),
    "nu": ("exponent of the correlation length", r"\nu"),
    "omega": ("correction exponent", r"\omega"),
    "quartic": ("quartic term", "u"),
    "relative_mass": ("slope of the loss", r"m(Q)/\rho"),
    "components": ("components", "n"),
    "dim": ("dimension", "d"),
    "level": ("mode", "k"),
    "shift": ("interaction", r"m/\rho-1"),
    "squared_deviation": ("squared deviation", "Q"),
    "starting_coupling": ("coupling", "K"),
}

__all__ = exported(globals())
