"""The magnet: epsilon expansion, moved bonds, flow of the potential, block spins."""
