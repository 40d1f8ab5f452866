"""Buds over REST."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import django_filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.bud_shapes import (
    BudChangeInput,
    BudImportInput,
    BudInput,
    BudOutput,
    BudQualityOutput,
    BudTestInput,
    BudTestOutput,
    BudToolOutput,
    BudVersionOutput,
    BudYaml,
    CheckedDraftInput,
    RestoreVersionInput,
)
from chat.api.checks import (
    BudCheckInput,
    BudCheckOutput,
    CheckPlanInput,
    CheckPlanOutput,
    CheckRunOutput,
)
from chat.api.knowledge import KnowledgeFileOutput, NewKnowledgeFile
from chat.api.offers import OffersOfChat
from chat.artifacts.knowledge import knowledge_of
from chat.artifacts.meaning import knowledge_listed
from chat.models import Bud, BudVersion, Repeat
from chat.services.bud_drafts import save_draft, start_test
from chat.services.bud_quality import quality_of
from chat.services.bud_versions import duplicate_bud, restore_version
from chat.services.bud_yaml import BudFileEffect, apply_bud, write_bud
from chat.services.buds import (
    create_bud,
    offered_servers,
    offered_tools,
    require_edit,
    update_bud,
)
from chat.services.check_plans import Schedule, change_plan, plan_of
from chat.services.check_runs import start_run
from chat.services.check_showing import check_json, plan_json, run_json, runs_of
from chat.services.checks import add_check, checks_of
from chat.services.checks_before_saving import check_file, check_version
from chat.services.knowledge import add_knowledge
from chat.tools.usable_servers import ChatSetting
from chat.values import McpConfigOverrides, parse_value
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.api.uploads import UploadParser
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet


class BudFilters(RowFilterSet):
    is_archived = TruthFilter()
    search = django_filters.CharFilter(field_name="name", lookup_expr="icontains")


class BudToolFilters(RowFilterSet):
    """What a list of tools may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    search = django_filters.CharFilter(
        field_name="name", lookup_expr="icontains", max_length=256, label="A part of its name."
    )


_AHEAD: Final = ("added", "off")
_OF_CHATS_AHEAD: Final = extend_schema(
    parameters=[
        OpenApiParameter(
            "added",
            str,
            description="Ids of servers that the chat adds, with commas between them.",
        ),
        OpenApiParameter(
            "off", str, description="Ids of servers that it switches off, in the same form."
        ),
    ]
)


@extend_schema_view(
    servers=_OF_CHATS_AHEAD,
    resources=_OF_CHATS_AHEAD,
    prompts=_OF_CHATS_AHEAD,
    completions=_OF_CHATS_AHEAD,
)
class BudViewSet(OffersOfChat, ListRows, RetrieveRow, WorkspaceViewSet):
    """Assistants of the workspace."""

    model = Bud
    scopes = Scopes(read="chat", write="buds:write")
    serializer_class = BudOutput
    filterset_class = BudFilters
    orderings: ClassVar[Any] = ("name", "-id", "created_at")
    parameters: ClassVar[Any] = {
        "servers": _AHEAD,
        "resources": ("search", *_AHEAD),
        "prompts": ("search", *_AHEAD),
        "completions": _AHEAD,
        "versions": ("cursor", "page_size"),
        "check_runs": ("cursor", "page_size"),
        "offered": ("cursor", "page_size", "search", "server"),
        "tools": ("cursor", "page_size", "search", "server"),
    }

    def rows(self) -> WorkspaceQuerySet[Any]:
        rows = super().rows().select_related("provider")
        return rows.filter(is_draft=False) if self.action != "retrieve" else rows

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if not getattr(self, "swagger_fake_view", False) and self.request is not None:
            rows = offered_servers(self.workspace.pk)
            context["servers"] = {str(server.pk): server for server in rows}
        return context

    def chat_setting(self, pk: str) -> ChatSetting:
        """That of the caller's next chat with this bud, if it begins with these servers added and switched off."""
        rows = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
        named = {
            field: [one for one in self.request.query_params.get(name, "").split(",") if one]
            for name, field in (("added", "additional_servers"), ("off", "disabled_servers"))
        }
        return ChatSetting(
            bud=rows.select_related("workspace").fetch(pk),
            user_id=self.person.pk,
            overrides=parse_value(McpConfigOverrides, named, field="servers"),
        )

    @extend_schema(request=BudInput, responses={201: BudOutput})
    def create(self, request: Request) -> Response:
        """Make a bud."""
        values = self.read(BudInput)
        values.pop("version", None)
        provider_id = values.pop("provider_id", None)
        bud = create_bud(
            workspace_id=self.workspace.pk, actor=self.actor, values=values, provider_id=provider_id
        )
        return self.answer(bud, status=201)

    @extend_schema(request=BudChangeInput, responses=BudOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some of a bud's values; archive it with `is_archived`.

        409 with the code `checks_not_passed`: the bud demands that its checks pass with these values first. Send the
        values to `check-runs/`, wait until they have passed, and send the change again.
        """
        bud = self.get_object()
        values = self.read(BudChangeInput, partial=True)
        skips_checks = values.pop("skip_checks", False)
        has_provider = "provider_id" in values
        provider_id = values.pop("provider_id", None)
        base_version = values.pop("version", None)
        bud = update_bud(
            bud=bud,
            actor=self.actor,
            values=values,
            provider_id=provider_id,
            has_provider=has_provider,
            base_version=base_version,
            skips_checks=skips_checks,
        )
        return self.answer(bud)

    @extend_schema(responses=BudVersionOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], filterset_class=None, orderings=("-number",))
    def versions(self, request: Request, pk: str) -> Response:
        """All versions, the newest first, for those who may edit the bud."""
        bud = self._editable()
        rows = BudVersion.objects.for_workspace(self.workspace).filter(bud=bud)
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(BudVersionOutput(page, many=True).data)

    @extend_schema(request=RestoreVersionInput, responses=BudOutput)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Make an earlier version the newest one.

        409 with the code `checks_not_passed`: the bud demands that its checks have passed with that version. Send its
        `number` to `check-runs/` first.
        """
        values = self.read(RestoreVersionInput)
        bud = restore_version(
            bud=self._editable(),
            number=values["number"],
            actor=self.actor,
            base_version=values.get("version"),
            skips_checks=values.get("skip_checks", False),
        )
        return self.answer(bud)

    @extend_schema(request=None, responses={201: BudOutput})
    @action(detail=True, methods=["post"])
    def duplicate(self, request: Request, pk: str) -> Response:
        """Make a copy under a free name."""
        return self.answer(duplicate_bud(bud=self._editable(), actor=self.actor), status=201)

    @extend_schema(responses=BudYaml, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def export(self, request: Request, pk: str) -> Response:
        """The bud as a YAML file."""
        return Response({"yaml": write_bud(self._editable())})

    @extend_schema(request=BudImportInput, responses={200: BudOutput, 201: BudOutput})
    @action(detail=False, methods=["post"], url_path="import")
    def from_file(self, request: Request) -> Response:
        """Make the bud that a YAML file describes, or change the one of the same slug.

        409 with the code `checks_not_passed`: the bud demands that its checks pass first. Send the file to
        `/api/buds/check-file/`, wait until they have passed, and import it again.
        """
        values = self.read(BudImportInput)
        bud, applied = apply_bud(
            values["yaml"],
            workspace_id=self.workspace.pk,
            person=self.person,
            actor=self.actor,
            skips_checks=values.get("skip_checks", False),
        )
        return self.answer(bud, status=201 if applied is BudFileEffect.MADE else 200)

    @extend_schema(request=BudYaml, responses={201: CheckRunOutput})
    @action(detail=False, methods=["post"], url_path="check-file")
    def check_file(self, request: Request) -> Response:
        """Run the checks of the bud that a YAML file would change, with the file's values and checks.

        422: there is no such bud yet, or it has no checks. 409: its checks are running already.
        """
        run = check_file(
            self.read(BudYaml)["yaml"],
            workspace_id=self.workspace.pk,
            person=self.person,
            actor=self.actor,
        )
        return Response(run_json(run, self.actor, with_results=True), status=201)

    @extend_schema(responses=BudQualityOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def quality(self, request: Request, pk: str) -> Response:
        """How the bud did in the last 30 days, for those who may edit it."""
        found = quality_of(bud=self._editable(), actor=self.actor)
        return Response(BudQualityOutput(found).data)

    @extend_schema(request=BudTestInput, responses={201: BudTestOutput})
    @action(detail=False, methods=["post"])
    def test(self, request: Request) -> Response:
        """Open a test chat with unsaved values. It is in no list, and is erased after a day."""
        values = self.read(BudTestInput)
        values.pop("version", None)
        provider_id, bud_id = values.pop("provider_id", None), values.pop("bud_id", None)
        bud = self.get_queryset().fetch(bud_id) if bud_id else None
        draft = save_draft(
            workspace_id=self.workspace.pk,
            bud=bud,
            person=self.person,
            actor=self.actor,
            values=values,
            provider_id=provider_id,
        )
        talk = start_test(draft=draft, person=self.person, actor=self.actor)
        return Response({"conversation_id": talk.pk}, status=201)

    @extend_schema(methods=["GET"], responses=BudCheckOutput(many=True), filters=False)
    @extend_schema(methods=["POST"], request=BudCheckInput, responses={201: BudCheckOutput})
    @action(detail=True, methods=["get", "post"], pagination_class=None)
    def checks(self, request: Request, pk: str) -> Response:
        """List the bud's test questions, or add one, for those who may edit it."""
        bud = self._editable()
        if request.method != "POST":
            return Response([check_json(check) for check in checks_of(bud)])
        check = add_check(bud=bud, values=self.read(BudCheckInput), actor=self.actor)
        return Response(check_json(check), status=201)

    @extend_schema(methods=["GET"], responses=CheckRunOutput(many=True), filters=False)
    @extend_schema(methods=["POST"], request=CheckedDraftInput, responses={201: CheckRunOutput})
    @action(
        detail=True,
        methods=["get", "post"],
        filterset_class=None,
        orderings=("-id",),
        url_path="check-runs",
    )
    def check_runs(self, request: Request, pk: str) -> Response:
        """List the runs of the bud's checks, the newest first, or run them: with the saved bud, the values given here, or an earlier version.

        Tools that may change data are never called. 409: they are running already.
        """
        bud = self._editable()
        if request.method != "POST":
            page = self.paginate_queryset(runs_of(bud)) or []
            return self.get_paginated_response([run_json(run, self.actor) for run in page])
        values = self.read(CheckedDraftInput, partial=True)
        values.pop("version", None)
        if (number := values.pop("number", None)) is not None:
            run = check_version(bud=bud, number=number, person=self.person, actor=self.actor)
            return Response(run_json(run, self.actor, with_results=True), status=201)
        has_provider = "provider_id" in values
        provider_id = values.pop("provider_id", None)
        run = start_run(
            bud=bud,
            person=self.person,
            actor=self.actor,
            values=values if values or has_provider else None,
            provider_id=provider_id if has_provider else bud.provider_id,
        )
        return Response(run_json(run, self.actor, with_results=True), status=201)

    @extend_schema(methods=["GET"], responses=CheckPlanOutput, filters=False)
    @extend_schema(methods=["PATCH"], request=CheckPlanInput, responses=CheckPlanOutput)
    @action(detail=True, methods=["get", "patch"], pagination_class=None, url_path="check-plan")
    def check_plan(self, request: Request, pk: str) -> Response:
        """When the bud's checks run by themselves, or change that; they run with the rights of whoever chose it.

        A failure is told in that person's notices.
        """
        bud = self._editable()
        if request.method != "PATCH":
            return Response(plan_json(plan_of(bud)))
        values = self.read(CheckPlanInput, partial=True)
        every = values.get("every")
        plan = change_plan(
            bud=bud,
            actor=self.actor,
            before_saving=values.get("before_saving"),
            schedule=None if every is None else Schedule(Repeat(every), self.person),
        )
        return Response(plan_json(plan))

    @extend_schema(methods=["GET"], responses=KnowledgeFileOutput(many=True), filters=False)
    @extend_schema(
        methods=["POST"],
        request={"multipart/form-data": NewKnowledgeFile},
        responses={201: KnowledgeFileOutput},
    )
    @action(
        detail=True,
        methods=["get", "post"],
        pagination_class=None,
        parser_classes=(UploadParser,),
    )
    def knowledge(self, request: Request, pk: str) -> Response:
        """List the files that a bud knows, or add one.

        A new file is read before the answer, which may take some minutes. 422: no text can be got out of it.
        """
        rows = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
        bud = rows.fetch(pk)
        if request.method == "GET":
            return Response(knowledge_listed(bud, knowledge_of(bud)))
        values = self.read(NewKnowledgeFile)
        file = add_knowledge(
            bud=bud,
            name=values.get("name") or values["file"].name,
            content=values["file"].read(),
            actor=self.actor,
        )
        return Response(knowledge_listed(bud, [file])[0], status=201)

    @extend_schema(responses=BudToolOutput(many=True))
    @action(
        detail=False,
        methods=["get"],
        url_path="tools",
        filterset_class=BudToolFilters,
        orderings=("name",),
    )
    def offered(self, request: Request) -> Response:
        """The tools that a new bud may name in its `mcp_config`, for those who manage buds."""
        require(self.actor, Permission.MANAGE_BUDS, workspace_id=self.workspace.pk)
        return self._tools()

    @extend_schema(responses=BudToolOutput(many=True))
    @action(
        detail=True,
        methods=["get"],
        filterset_class=BudToolFilters,
        orderings=("name",),
    )
    def tools(self, request: Request, pk: str) -> Response:
        """The tools that this bud may name in its `mcp_config`, for those who may edit it."""
        rows = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
        require_edit(rows.filter(is_draft=False).fetch(pk), self.actor)
        return self._tools()

    def _tools(self) -> Response:
        rows = self.filter_queryset(offered_tools(self.workspace.pk).select_related("server"))
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(BudToolOutput(page, many=True).data)

    def _editable(self) -> Bud:
        bud: Bud = self.get_object()
        require_edit(bud, self.actor)
        return bud
