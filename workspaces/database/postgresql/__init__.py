"""The database backend for PostgreSQL: Django's, and lanes in front of its pool."""
