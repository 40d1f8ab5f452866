"""The net under the services: configuration that is written past them becomes an entry all the same."""

from audit.net.sweeping import sweep
from audit.net.triggers import install, remove, trigger_statements

__all__ = ["install", "remove", "sweep", "trigger_statements"]
