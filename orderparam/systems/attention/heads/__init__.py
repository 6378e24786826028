"""Random attention with many heads: its kernels, and how a finite number of heads differs from
them."""
