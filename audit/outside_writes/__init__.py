"""Writes of configuration that go past the services: triggers note them, and they become entries, too."""

from audit.outside_writes.recording import sweep
from audit.outside_writes.triggers import install, remove, trigger_statements

__all__ = ["install", "remove", "sweep", "trigger_statements"]
