"""Random features in the number of examples and of features at once: where which of them is what
limits.
"""
