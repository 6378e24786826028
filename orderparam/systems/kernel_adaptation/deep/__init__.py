"""Networks with several hidden layers, on given training sets."""
