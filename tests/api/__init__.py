"""The REST interface as a whole, against its own description."""
