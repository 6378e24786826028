"""What the systems share: one neuron's weights averaged on the modes h_k of the target's direction, and the ridge that data leave."""
