"""The tests mirror the apps, path for path."""
