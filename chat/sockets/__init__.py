"""The socket of an open page: commands in, events out."""
