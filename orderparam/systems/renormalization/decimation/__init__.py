"""Kernel regression with modes integrated out one by one, without rescaling."""
