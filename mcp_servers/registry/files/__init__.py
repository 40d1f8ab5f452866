"""Lists of servers as files: the format that desktop clients share, and the platform's own file in it."""
