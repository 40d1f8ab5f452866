"""What people read and type: names, numbers, moments and the marks of texts."""
