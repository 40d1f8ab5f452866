"""The net under the services: configuration that is written past them becomes an entry all the same."""

from audit.outside_writes.sweeping import sweep
from audit.outside_writes.triggers import install, remove, trigger_statements

__all__ = ["install", "remove", "sweep", "trigger_statements"]
