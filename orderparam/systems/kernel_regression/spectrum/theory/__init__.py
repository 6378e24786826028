"""Theories of a learning curve from a spectrum, one set of assumptions a file."""
