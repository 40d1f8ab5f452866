"""How messages reach a server and come back, one module for each transport."""
