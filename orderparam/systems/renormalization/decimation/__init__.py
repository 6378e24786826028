"""Modes integrated out of kernel regression one by one, without rescaling: ridge, noise and
non-Gaussianity along the flow.
"""
