"""Universality: models of one universality class share their critical exponents and the shape of
their scaling functions.
"""
