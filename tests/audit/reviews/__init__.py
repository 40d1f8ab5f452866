"""Schedules of the log, what they sent, and reviews."""
