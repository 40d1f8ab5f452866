"""What open pages see as it happens: rows that change, and the text of an answer while it is written."""
