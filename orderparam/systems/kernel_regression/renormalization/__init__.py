"""Modes too small to be learned are integrated out: into a ridge and a noise, the same everywhere or where the modes act."""
