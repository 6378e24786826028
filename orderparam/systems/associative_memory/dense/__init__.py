"""Dense associative memories."""
