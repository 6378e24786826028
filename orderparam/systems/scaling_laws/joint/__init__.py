"""Random features with given numbers of examples and of features, either of which may limit the
error.
"""
