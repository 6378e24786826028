"""Noisy training of a network on one fixed training set."""
