"""Bayes-optimal estimation of weights: state evolution, thresholds and message passing."""
