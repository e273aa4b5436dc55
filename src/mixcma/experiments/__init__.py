"""The paper's three experiments, and the race."""
