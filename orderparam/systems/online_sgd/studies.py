"""The named figures of one-pass SGD."""

from orderparam.systems.online_sgd.studies_curves import sgd_saad_solla, sgd_trade_off
from orderparam.systems.online_sgd.studies_phases import sgd_noise_dominated, sgd_perfect_learning, sgd_phase_diagram

__all__ = ["sgd_noise_dominated", "sgd_perfect_learning", "sgd_phase_diagram", "sgd_saad_solla", "sgd_trade_off"]
