"""The walks' world serves here as well."""

from tests.isolation.conftest import world

__all__ = ["world"]
