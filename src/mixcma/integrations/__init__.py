"""mixcma inside other tools, each behind an extra of its own."""
