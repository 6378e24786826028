"""Renormalization: flows that are run, drawn and checked against data."""

from orderparam.systems.renormalization.decimation.model import DecimatedPool, DecimatedRegression
from orderparam.systems.renormalization.decimation.theory import decimated, decimation_flow, running_ridge
