"""Names, and how moments and numbers are written."""
