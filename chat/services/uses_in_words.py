"""What uses a shared provider, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.services.removed_model_uses import RemovedModelUses
from chat.services.shared_uses import SharedProviderUses
from workspaces.errors import InvalidInput
from workspaces.words.formats import whole

_MOST_NAMED: Final = 10
"""Models in one sentence."""


def require_word(taken: RemovedModelUses) -> None:
    """Raise InvalidInput at `takes_away` where models would be taken from what uses them."""
    if warning := taken_in_words(taken):
        raise InvalidInput(fields={"takes_away": [warning]})


def taken_in_words(taken: RemovedModelUses) -> str:
    """What gets no answers any more if models are taken away, in words; empty: nothing."""
    if not taken.models:
        return ""
    uses = SharedProviderUses(workspaces=taken.workspaces, buds=taken.buds, chats=taken.chats)
    sentences = []
    if used_by := uses_in_words(uses):
        sentences.append(
            ngettext(
                "Models that you take away are used by %(uses)s of %(count)s workspace: %(models)s.",
                "Models that you take away are used by %(uses)s of %(count)s workspaces: %(models)s.",
                taken.workspaces,
            )
            % {
                "uses": used_by,
                "count": whole(taken.workspaces),
                "models": _short_list(taken.models),
            }
        )
        sentences.append(_("They stay, and get no answers until somebody chooses another model."))
    if taken.searches:
        sentences.append(
            ngettext(
                "%(count)s workspace searches its knowledge files by words only then.",
                "%(count)s workspaces search their knowledge files by words only then.",
                taken.searches,
            )
            % {"count": whole(taken.searches)}
        )
    return " ".join(sentences)


def _short_list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} …" if len(names) > _MOST_NAMED else shown


def uses_in_words(uses: SharedProviderUses) -> str:
    """How many buds and chats get their answers from it, in words; empty: none."""
    parts = []
    if uses.buds:
        parts.append(
            ngettext("%(count)s bud", "%(count)s buds", uses.buds) % {"count": whole(uses.buds)}
        )
    if uses.chats:
        parts.append(
            ngettext("%(count)s chat", "%(count)s chats", uses.chats) % {"count": whole(uses.chats)}
        )
    return _(" and ").join(parts)
