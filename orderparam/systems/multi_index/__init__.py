"""How long it takes to find a few hidden directions: exponents of a target, exit times of SGD, and what reuse of data
changes."""

from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.hint.experiment import leading_eigenvectors, message_passing
from orderparam.systems.multi_index.hint.model import HintedOverlaps, HintedParity, HintedSpectrum
from orderparam.systems.multi_index.hint.theory import first_seen, spectral, state_evolution
from orderparam.systems.multi_index.learnability.experiment import climbed_staircase, measured_hermite_power
from orderparam.systems.multi_index.learnability.exponents import TargetExponents, exponents, table
from orderparam.systems.multi_index.learnability.model import Climb, Hardness, HermitePower, LearnedTarget, WeakLearnability
from orderparam.systems.multi_index.learnability.theory import grand_staircase, hardness
from orderparam.systems.multi_index.learnability.threshold import WeakThreshold, threshold
from orderparam.systems.multi_index.neuron.experiment import exit_chain, overlap_chain, trained_neuron
from orderparam.systems.multi_index.neuron.model import ExitTime, OverlapPath, SphericalSGD
from orderparam.systems.multi_index.neuron.theory import drift_and_spread, exit_time, overlap_flow
