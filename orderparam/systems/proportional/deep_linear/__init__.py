"""Linear networks of any depth, solved exactly at every width and in closed form at zero
temperature."""
