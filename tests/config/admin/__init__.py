"""Django's admin as one place of work."""
