"""Gaussian calculus: activation functions with their averages over Gaussian fields, Hermite
polynomials, quadrature."""

from orderparam.gaussian.activations import Activation, activation, activation_names
from orderparam.gaussian.hermite import hermite, hermite_coefficients
from orderparam.gaussian.quadrature import expectation, expectation_2d, standard_normal_rule
