"""The installation as its owner sees it."""
