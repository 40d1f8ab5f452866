"""Journeys of people in a real browser, against a server started exactly as they start it."""
