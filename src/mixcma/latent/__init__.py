"""Variables as lines of numbers: one variable as a line, a space as latent coordinates, and back to parameters."""
