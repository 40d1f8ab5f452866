"""Background jobs: when they ran, what ran them, and how they go through rows."""
