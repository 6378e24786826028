"""Theories of the room. Reading order: results, kernels (with patch_kernels), action (with majorise), finite_width; then deep,
integrated and similarity."""
