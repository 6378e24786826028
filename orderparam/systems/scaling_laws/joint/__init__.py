"""Random features with a given number of examples and of features, and which of the two limits the
error.
"""
