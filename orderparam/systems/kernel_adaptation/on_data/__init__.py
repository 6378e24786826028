"""Two-layer networks on given training sets."""
