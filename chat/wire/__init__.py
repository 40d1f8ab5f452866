"""What goes over a page's socket: events from the server, commands to it, and rows as both they and REST show them."""
