"""Several processes that serve one installation."""
