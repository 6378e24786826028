"""Pictures as patterns."""
