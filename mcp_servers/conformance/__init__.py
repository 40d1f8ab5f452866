"""The official conformance suite, run against this app's own connections."""
