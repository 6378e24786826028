"""Theories of training sets that are drawn from a pool, one set of assumptions a file."""
