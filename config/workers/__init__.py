"""Celery's queue, its scheduler, and what tasks carry along."""
