"""Sealed entries on their way to sinks outside: in order, at least once, never in the way of a call."""
