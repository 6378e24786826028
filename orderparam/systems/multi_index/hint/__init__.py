"""A parity of three directions, one of which is known in part."""
