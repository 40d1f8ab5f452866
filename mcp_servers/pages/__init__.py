"""Servers for people and programs: pages, forms, cards, the admin and the REST interface. Thin, over the services."""
