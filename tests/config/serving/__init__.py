"""What stands between the wire and a view."""
