"""Linear networks of any depth: exact at every width, and in closed form at zero temperature."""
