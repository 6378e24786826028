"""The magnet: epsilon expansion, bond moving, flow of the potential, block spins."""
