"""The database backend for SQLite: Django's, and a queue of the writers in this process."""
