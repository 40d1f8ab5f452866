"""A chat as a page for paper: the browser prints it, or saves it as a PDF."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chat.models import Conversation
from chat.pages.read_chat import entries_of
from chat.services.shared_texts import ChatTooLong, NothingSaid, build_text
from chat.shared_document import SharedFile
from workspaces.database import database_now
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@csp_update({"frame-src": ["'self'"]})  # type: ignore[arg-type]  # knows no arguments of the address
@require_safe
@login_required
def print_chat(
    request: WorkspaceRequest, workspace_slug: str, conversation_id: UUID
) -> HttpResponse:
    """A person's own chat, as it is now, for paper. Of tool calls their names, or all that they said (`?calls=full`)."""
    workspace = workspace_of(request, Permission.USE_CHAT)
    rows = Conversation.objects.for_workspace(workspace).visible_to(request.user)
    conversation = rows.select_related("bud").fetch(conversation_id)
    is_open = request.GET.get("calls") == "full"
    context = {
        "conversation": conversation,
        "is_open": is_open,
        "printed_at": database_now(),
        "asked_by": request.user.display_name,
    }
    try:
        text = build_text(conversation, until=None, with_files=True, with_calls=is_open)
    except NothingSaid:
        context["fault"] = _("There is nothing to print yet. Wait for the first answer.")
    except ChatTooLong:
        context["fault"] = _(
            "This chat is too long to print. Download it instead: choose “Download” in its menu."
        )
    else:
        context["document"] = text.document
        address = partial(_address, workspace_slug)
        context["entries"] = entries_of(text.document, address, text.left_out)
    return render(request, "chat/print_chat.html", context)


def _address(workspace_slug: str, file: SharedFile, *, is_picture: bool) -> str:
    name = "chat:artifact_preview" if is_picture else "chat:artifact"
    return reverse(name, args=[workspace_slug, file.artifact_id, file.number])
