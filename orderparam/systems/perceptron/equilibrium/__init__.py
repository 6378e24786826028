"""Students drawn from the Boltzmann law of the number of their errors: quenched and annealed, binary and spherical."""
