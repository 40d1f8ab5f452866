"""Chats in which something was said, and what a search finds of them."""

from __future__ import annotations

from chat.models import Bud, Conversation, Message
from chat.services.conversations import create_conversation
from chat.services.search import search
from tests.factories import Tenant


def talk(tenant: Tenant, who: str, *texts: str, status: str = "complete") -> Conversation:
    """A conversation in which this was said."""
    buds = Bud.objects.for_workspace(tenant.workspace)
    bud = buds.first() or Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    conversation = create_conversation(bud=bud, owner=getattr(tenant, who), actor=tenant.actor(who))
    for at, text in enumerate(texts):
        Message.objects.create(
            workspace=tenant.workspace,
            conversation=conversation,
            role="user",
            text=text,
            status=status,
            order_key=at,
        )
    return conversation


def found(tenant: Tenant, query: str, who: str = "member") -> list[str]:
    """Each hit's excerpt, with what was looked for in brackets."""
    hits = search(workspace=tenant.workspace, person=getattr(tenant, who), query=query)
    return ["".join(f"[{text}]" if hit else text for text, hit in one.excerpt) for one in hits]
