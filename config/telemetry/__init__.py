"""What is written down about the running product: logs, metrics and traces."""
