"""The paper's three experiments: Table 2, the sensitivity to alpha, and how the older methods stagnate."""
