"""What stands between the wire and a view: limits, headers, threads, errors and static files."""
