"""The ground of the REST interface."""
