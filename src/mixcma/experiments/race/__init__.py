"""A race: every optimiser through its own public package, from the same starts, with the same budgets and targets."""
