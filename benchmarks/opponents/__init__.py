"""The answers of some theories and experiments as an expert would write them for these cases alone,
in vectorised NumPy or in numba: what the package is timed against in `beside_opponents.py`.
"""
