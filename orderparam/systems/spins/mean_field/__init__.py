"""The mean-field magnet of Curie and Weiss: exact averages at any size, the limit of many spins,
metastable states and their spinodal.
"""
