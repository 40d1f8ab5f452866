"""Files, as the API's schema tells of them: given whole, in part, or not, where they are known already.

Source: RFC 9110, sections 13 (conditional requests) and 14 (range requests).
"""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

ANY_FILE: Final = "*/*"


def _header(name: str, words: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=words)


FILE_HEADERS: Final = (
    _header("Range", "One part, such as `bytes=0-1023`."),
    _header("If-Range", "An `ETag`: the part is of that content, and otherwise all is given."),
    _header("If-None-Match", "The `ETag` of what is known already."),
)


def file_answers(media_type: str) -> dict[Any, Any]:
    """Give what a request for a file of this type is answered with."""
    part = OpenApiResponse(OpenApiTypes.BINARY, description="The part that `Range` names.")
    return {
        (200, media_type): OpenApiTypes.BINARY,
        (206, media_type): part,
        304: OpenApiResponse(description="It is what `If-None-Match` names."),
        416: OpenApiResponse(description="It has no such part."),
    }
