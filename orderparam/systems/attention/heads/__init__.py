"""Random attention with many heads: its kernels, and the corrections of a finite number of
heads."""
