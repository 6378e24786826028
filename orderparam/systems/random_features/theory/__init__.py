"""The theories: errors and order parameters of a convex learner with a fixed feature map, and the best penalty."""

from orderparam.systems.random_features.theory.curve import FeatureCurve
from orderparam.systems.random_features.theory.optimal import OptimalRidge, optimal_ridge
from orderparam.systems.random_features.theory.state_evolution import asymptotics, ridge_response, state_evolution
