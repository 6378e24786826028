"""Regression on training sets that are drawn without replacement from a finite pool of real inputs
with targets."""
