"""What every family promises, each promise once: a `Sample` of each family, and tests over all of them."""
