"""The optimal estimator of a generalised linear model, and message passing, which reaches it up to
the first transition.
"""
