"""Random features with a given number of examples and of features: which of the two limits the
error.
"""
