"""One-pass SGD with power-law random features: risk, best width at a given compute, momentum and
schedules.
"""
