"""One run: the optimizer, its noise, how it starts, how it is going, and what evaluations told it."""
