"""Telling programs what happens in conversations: signed, at least once, never inside the change itself."""
