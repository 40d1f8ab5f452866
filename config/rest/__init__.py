"""The REST interface as a whole: its router, its errors and its description."""
