"""What the product rests on goes away and comes back, for real: PostgreSQL, Redis, processes."""
