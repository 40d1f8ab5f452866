"""What every viewset does alike: strict parameters, throttles, idempotency; and through which door its rows come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import Throttled
from rest_framework.metadata import BaseMetadata
from rest_framework.response import Response
from rest_framework.serializers import (
    BaseSerializer,
    ChoiceField,
    DictField,
    ListField,
    ListSerializer,
    Serializer,
    ValidationError,
)
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.viewsets import GenericViewSet

from workspaces.api import idempotency
from workspaces.api.authentication import (
    ApiTokenAuthentication,
    CookieAuthentication,
    InWorkspace,
    Nobody,
    OwnsPlatform,
    Scopes,
)
from workspaces.api.filtering import (
    LIST_PARAMETERS,
    StrictFilterBackend,
    check_parameters,
    one_of,
)
from workspaces.api.pagination import KeysetPagination
from workspaces.api.parsing import StrictJSONParser
from workspaces.errors import NotFound
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import IdempotentRequest, User, Workspace


_USUAL = Serializer.to_internal_value
_MOST_NAMED = 40
"""Fields that an error names."""
_BRACES = str.maketrans({"{": "{{", "}": "}}"})


class RateExceeded(Throttled):
    """In words that people read in the chat, too."""

    default_detail = _lazy("Too many requests in a short time.")
    extra_detail_singular = _lazy("Try again in {wait} second.")  # type: ignore[assignment]  # as its own
    extra_detail_plural = _lazy("Try again in {wait} seconds.")  # type: ignore[assignment]  # as its own


class CallerThrottle(SimpleRateThrottle):
    """So many requests for each token, or for each person."""

    scope = "api"

    def get_rate(self) -> str:
        """The rate of the settings."""
        return str(settings.TRELLIS.api_rate)

    def throttle_failure(self) -> bool:
        """Say when the caller can go on."""
        raise RateExceeded(self.wait())

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        """Count each token by itself, so that a runaway script does not lock its owner out."""
        if not request.user.is_authenticated:
            return f"throttle:api:{self.get_ident(request)}"
        token = getattr(request.auth, "pk", None)
        return f"throttle:api:{request.user.pk}:{token or 'session'}"


class BriefMetadata(BaseMetadata):
    """Answers OPTIONS with what an address takes and gives; the fields of each operation are in the schema."""

    def determine_metadata(self, request: Request, view: Any) -> dict[str, Any]:
        """Give the content types; `Allow` has the methods."""
        return {
            "renders": [one.media_type for one in view.renderer_classes],
            "parses": [one.media_type for one in view.parser_classes],
        }


class ApiViewSet(GenericViewSet[Any]):
    """What the viewsets of a workspace and those of the platform do alike.

    A subclass sets `scopes`, `serializer_class` (the output) and, for lists, `orderings` and `filterset_class`; it
    writes actions that read input, call one service and give `self.answer(row)`.
    """

    scopes: ClassVar[Scopes]
    """Without it the view accepts no tokens."""
    orderings: ClassVar[Sequence[str]] = ("-id",)
    """Fields by which a list may be ordered; the first is the default. They must not be null."""
    parameters: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Further query parameters of an action, by the action's name."""
    shown_once: ClassVar[frozenset[str]] = frozenset()
    """Fields of answers that are secrets although their names do not say so: stored for no repeated request."""
    needs_person: ClassVar[frozenset[str]] = frozenset()
    """Actions that no token may call, whatever its scopes."""

    authentication_classes = (ApiTokenAuthentication, CookieAuthentication)
    permission_classes: Any = (Nobody,)
    throttle_classes = (CallerThrottle,)
    parser_classes = (StrictJSONParser,)
    metadata_class = BriefMetadata
    filter_backends = (StrictFilterBackend,)
    pagination_class: Any = KeysetPagination
    lookup_value_converter = "uuid"

    _idempotent: IdempotentRequest | None = None

    @property
    def actor(self) -> Actor:
        """Who acts."""
        return self._http_request.actor

    @property
    def person(self) -> User:
        """The signed-in person, or the token's owner."""
        return self._http_request.user

    @property
    def _http_request(self) -> WorkspaceRequest:
        return cast("WorkspaceRequest", self.request._request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, authorize, count; then refuse unknown parameters and replay known keys."""
        super().initial(request, *args, **kwargs)
        check_parameters(request, self._allowed_parameters())
        self._idempotent = idempotency.begin(request)

    def _allowed_parameters(self) -> set[str]:
        allowed = set(self.parameters.get(self.action or "", ()))
        if self.action == "list":
            allowed |= LIST_PARAMETERS
            filterset = getattr(self, "filterset_class", None)
            allowed |= set(filterset.base_filters) if filterset is not None else set()
        return allowed

    def handle_exception(self, exc: Exception) -> Response:
        """Give a stored answer as it was; everything else goes to the one exception handler."""
        if isinstance(exc, idempotency.Replayed):
            return exc.response()
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Store the answer under its key before it is given."""
        row, self._idempotent = self._idempotent, None
        if row is not None and isinstance(response, Response):
            idempotency.finish(row, response, shown_once=self.shown_once)
        return super().finalize_response(request, response, *args, **kwargs)

    def read(
        self, serializer_class: type[BaseSerializer[Any]], *, partial: bool = False
    ) -> dict[str, Any]:
        """Give the validated body.

        What the view gives may come back: programs read a row, change a field and send it. Any other field that is not
        known is a typing error, and would be lost without a word.

        Raises:
            ValidationError: it does not fit, or has a field that means nothing here (400).
        """
        serializer = serializer_class(
            data=self.request.data, partial=partial, context=self.get_serializer_context()
        )
        self._refuse_unknown(serializer)
        _name_choices(serializer)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def read_query(self, serializer_class: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """Give the validated parameters of the address.

        Raises:
            ValidationError: one does not fit (400).
        """
        serializer = serializer_class(data=self.request.query_params)
        _name_choices(serializer)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def _refuse_unknown(self, serializer: BaseSerializer[Any]) -> None:
        output = cast("Any", getattr(self, "serializer_class", None))
        is_known = output is not None and issubclass(output, Serializer)
        faults = _unknown_in(serializer, self.request.data, output() if is_known else None)
        if faults:
            raise ValidationError(faults, "unknown_field")

    def answer(self, row: Any, status: int = 200) -> Response:
        """Give one row in the view's output shape."""
        return Response(self.get_serializer(row).data, status=status)


def _unknown_in(reader: Any, sent: Any, shown: Any) -> dict[Any, Any]:
    """What a body has that means nothing, also within its inner objects: by name, each with what there is instead.

    Args:
        shown: how the view shows what is read here; what it gives may come back, and so may what the reader names in
            its `also_shown`. Not where the reader has `replaces_all`: what came back would be lost with all that it
            leaves out. None: it does not show it.
    """
    if isinstance(reader, ListSerializer | ListField | DictField):
        inner = getattr(shown, "child", None)
        pairs: Any = ()
        if isinstance(sent, dict) and isinstance(reader, DictField):
            pairs = sent.items()
        elif isinstance(sent, list) and not isinstance(reader, DictField):
            pairs = enumerate(sent)
        found = ((str(place), _unknown_in(reader.child, one, inner)) for place, one in pairs)
        return {place: faults for place, faults in found if faults}
    if not (isinstance(reader, Serializer) and isinstance(sent, dict)):
        return {}
    if type(reader).to_internal_value is not _USUAL:
        return {}  # a serializer that reads in a way of its own says itself what it takes
    known = reader.fields
    replaces_all: bool = getattr(reader, "replaces_all", False)
    given: Any = shown.fields if isinstance(shown, Serializer) and not replaces_all else {}
    also: frozenset[str] = getattr(reader, "also_shown", frozenset())
    error = _("There is no such field here. There are: %(names)s.") % {
        "names": ", ".join(list(known)[:_MOST_NAMED])
    }
    faults: dict[Any, Any] = {}
    for name, value in sent.items():
        if name not in known:
            if name not in given and name not in also:
                faults[str(name)[:100]] = [error]
        elif not known[name].read_only:
            inner_faults = _unknown_in(known[name], value, given.get(name))
            if inner_faults:
                faults[name] = inner_faults
    return faults


def _name_choices(reader: Any) -> None:
    """Have each field that takes one of some values, also in inner objects, say which."""
    if isinstance(reader, ChoiceField):
        reader.error_messages["invalid_choice"] = one_of(reader.choices).translate(_BRACES)
    elif isinstance(reader, Serializer):
        for field in reader.fields.values():
            _name_choices(field)
    elif (inner := getattr(reader, "child", None)) is not None:
        _name_choices(inner)


class WorkspaceViewSet(ApiViewSet):
    """The base of all viewsets about rows of one workspace. A subclass sets `model`, too."""

    model: ClassVar[type[WorkspaceModel]]
    permission_classes: Any = (InWorkspace,)

    @property
    def workspace(self) -> Workspace:
        """The workspace of the request; `InWorkspace` has seen to it that there is one."""
        workspace = self._http_request.workspace
        assert workspace is not None
        return workspace

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        """What `rows` gives; none where the interface is described, since nobody asks then."""
        if getattr(self, "swagger_fake_view", False):
            return cast("WorkspaceQuerySet[Any]", self.model.objects.across_workspaces().none())
        return self.rows()

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Only rows of this workspace that this person may see."""
        door = cast("WorkspaceQuerySet[Any]", self.model.objects.for_workspace(self.workspace))
        return door.visible_to(self.person)

    def get_object(self) -> Any:
        """Give the row of the address, or raise NotFound alike for a missing and for a foreign one."""
        return self.get_queryset().fetch(self.kwargs[self.lookup_url_kwarg or self.lookup_field])


class PlatformViewSet(ApiViewSet):
    """The base of all viewsets about the whole installation, for the platform's owner alone."""

    scopes = Scopes(read=PLATFORM_READ, write=PLATFORM_WRITE)
    permission_classes: Any = (OwnsPlatform,)

    def get_object(self) -> Any:
        """Give the row of the address, or raise NotFound."""
        return self._found(self.get_queryset())

    def get_held(self) -> Any:
        """Give the row of the address, which nobody else changes until the transaction ends.

        Raises:
            NotFound: there is none.
        """
        return self._found(self.get_queryset().select_for_update(no_key=True))

    def _found(self, rows: QuerySet[Any]) -> Any:
        row = rows.filter(pk=self.kwargs["pk"]).first()
        if row is None:
            raise NotFound.of(rows.model)
        return row


def one_document(shape: type[Serializer[Any]], operation_id: str, **more: Any) -> Any:
    """Describe a viewset's list as the one document that it gives."""
    responses = forced_singular_serializer(shape)  # type: ignore[no-untyped-call]  # has no types
    return extend_schema(responses=responses, filters=False, operation_id=operation_id, **more)


class ListRows:
    """GET of a list: filtered, ordered, in pages."""

    def list(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give one page."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        shown: Response = self.get_paginated_response(self.get_serializer(page, many=True).data)
        return shown


class RetrieveRow:
    """GET of one row."""

    def retrieve(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give the row."""
        shown: Response = self.answer(self.get_object())
        return shown
