"""From the kernel that never moves to weights with their full distribution."""
