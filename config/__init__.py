"""Wiring only: settings, routes, processes. Nothing imports this package; apps read ``django.conf.settings``."""
