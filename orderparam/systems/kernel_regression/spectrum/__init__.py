"""A kernel by its spectrum over the inputs, of which the training set is a random sample."""
