"""What all of the REST interface builds on: who calls, in which workspace, and in one shape for everything.

An app's ``api`` module holds its viewsets and names them in ``routes``, a list of ``(prefix, viewset)``; the router in
``config.rest.api`` mounts them. A viewset descends from `WorkspaceViewSet` and says which rows it serves, which token
scopes it asks for, and by which fields lists may be filtered and ordered. What belongs to the whole installation descends
from `PlatformViewSet`, and is named in ``platform_routes``.
"""

from workspaces.api.authentication import ApiTokenAuthentication, CookieAuthentication, Scopes
from workspaces.api.filtering import RowFilterSet
from workspaces.api.pagination import KeysetPagination
from workspaces.api.viewsets import (
    ApiViewSet,
    ListRows,
    PlatformViewSet,
    RetrieveRow,
    WorkspaceViewSet,
    one_document,
)

__all__ = [
    "ApiTokenAuthentication",
    "ApiViewSet",
    "CookieAuthentication",
    "KeysetPagination",
    "ListRows",
    "PlatformViewSet",
    "RetrieveRow",
    "RowFilterSet",
    "Scopes",
    "WorkspaceViewSet",
    "one_document",
]
