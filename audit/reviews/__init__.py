"""What people keep and do with the log's pages: saved views, files that are sent again and again, sign-offs."""
