"""What goes over the connections, kept for a while for whoever looks after a server."""
