"""Rules that watch the log, and how people hear of what they find."""
