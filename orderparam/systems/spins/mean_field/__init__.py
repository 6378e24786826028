"""The mean-field magnet of Curie and Weiss: exact at any size, with its limit of many spins, its
metastable states and their spinodal.
"""
