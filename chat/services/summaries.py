"""What people do with the summary of older messages: read it, change it, and not have it used."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from chat.live.recording import changing
from chat.models import Message
from chat.services.turns import active_turn, check_text
from chat.summaries import LONGEST_SUMMARY, keep_summary, summary_of
from workspaces.actors import Actor
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.roles import Permission, require


def change_summary(
    *, message: Message, actor: Actor, text: str | None = None, is_used: bool | None = None
) -> Message:
    """Change the summary that ends with this message; None leaves a value as it is.

    While it is not used, older messages are left out where they do not fit, and no other takes its place.

    Raises:
        NotFound: there is no summary at this message.
        InvalidInput: no text, or one that is too long.
        Conflict: the conversation is being answered.
    """
    require(actor, Permission.USE_CHAT, workspace_id=message.workspace_id)
    if text is not None:
        check_text(text)
        if len(text) > LONGEST_SUMMARY:
            raise InvalidInput(
                fields={"text": [_("At most %(most)s characters.") % {"most": LONGEST_SUMMARY}]}
            )
    with changing(message.conversation_id, message.workspace_id) as changes:
        row = Message.objects.for_workspace(message.workspace_id).fetch(message.pk)
        summary = summary_of(row)
        if summary is None:
            raise NotFound(_("This message has no summary."))
        if active_turn(changes.conversation) is not None:
            raise Conflict(_("Please wait until the answer is complete, or stop it."))
        if text is not None and text != summary.text:
            summary = replace(summary, text=text, is_edited=True)
        if is_used is not None:
            summary = replace(summary, is_used=is_used)
        keep_summary(row, summary)
        changes.message(row)
    return row
