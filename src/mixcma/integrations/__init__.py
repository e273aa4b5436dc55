"""mixcma inside other tools; each integration needs its own extra."""
