"""What the systems share: the weights of one neuron averaged on the modes h_k, and the ridge that data leave to a kernel."""
