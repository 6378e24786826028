"""The theories: errors and order parameters of a convex learner with a fixed feature map, and the best penalty."""
