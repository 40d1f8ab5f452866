"""How Django itself writes moments, as in lists and forms of the admin: a module for each language."""
