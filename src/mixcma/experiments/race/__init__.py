"""A race of optimisers, each run through its own public package, from equal starts, with equal budgets and targets."""
