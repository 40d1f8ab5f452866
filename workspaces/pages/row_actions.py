"""Actions on several rows of a list in the admin: bounded, asked about where that is due, each row by itself.

    actions = ("suspend",)

    @row_action(_("Suspend"), done=SUSPENDED, question=ConfirmQuestion(...), permissions=["change"])
    def suspend(self, request: HttpRequest, row: Membership) -> None:
        suspend_member(membership=row, actor=actor_of(request))

The method is given one row after the other, and calls the service. What the service refuses is told with the row's name,
and undoes nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db import transaction
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workspaces.errors import DomainError, NotFound
from workspaces.pages.seen_values import hold
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from django.db import models
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse

    from workspaces.words.texts import Text

MOST_ROWS: Final = 200
"""Of one action: people wait for its page."""
MOST_ASKED: Final = 10
"""Of an action that asks something outside about each row, which may take seconds."""
_MOST_NAMED: Final = 10
_MOST_REASONS: Final = 20
_CONFIRMED: Final = "confirmed"
_REASON: Final = "reason"


class ShownRows(Protocol):
    """What an action needs of the admin class whose list it is on."""

    opts: Any
    admin_site: Any

    def row_name(self, row: Any) -> str:
        """What a row is called in messages and questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmQuestion:
    """What a page asks before an action that destroys something or shuts people out."""

    asked: Any
    """Its heading: a lazy plural with `count`."""
    consequence: Text
    """What will happen."""
    verb: Text
    """On the button."""
    reason_help: Text = ""
    """Who reads the reason that may be given; empty: none is asked for."""
    longest_reason: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowAction:
    name: str
    act: Callable[[Any, HttpRequest, Any], None]
    done: Any
    question: ConfirmQuestion | None
    most: int
    is_atomic: bool


def row_action(
    description: Text,
    *,
    done: Any = None,
    question: ConfirmQuestion | None = None,
    permissions: Sequence[str] | None = None,
    most: int = MOST_ROWS,
    is_atomic: bool = True,
) -> Callable[[Callable[[Any, Any, Any], None]], Any]:
    """Make an action of the admin out of a method that handles one row.

    Args:
        description: what the menu calls it.
        done: the message of the result, a lazy plural with `count`; None: the method tells it of each row.
        question: what is asked first; None: it is done at once.
        permissions: as of Django's `admin.action`: who is offered it. The service decides about each row.
        most: rows in one go.
        is_atomic: False where the service talks to something outside, which takes no place in a transaction.
    """

    def make(act: Callable[[Any, Any, Any], None]) -> Any:
        made = _RowAction(
            name=act.__name__,
            act=act,
            done=done,
            question=question,
            most=most,
            is_atomic=is_atomic,
        )

        @admin.action(description=description, permissions=permissions)
        @wraps(act)
        def run(
            shown: ShownRows, request: HttpRequest, queryset: models.QuerySet[Any]
        ) -> HttpResponse | None:
            return _run(made, shown, request, queryset)

        return run

    return make


def is_switched_off(form: ModelForm[Any]) -> bool:
    """Whether a form of a row switches it off, which was on."""
    return "is_active" in form.changed_data and not form.cleaned_data["is_active"]


def ask_before_saving(
    shown: ShownRows, request: HttpRequest, name: str, question: ConfirmQuestion
) -> HttpResponse | None:
    """Show the page that says what saving a form will do; None: that was confirmed. Its form sends the same again.

    Args:
        name: what the form's row is called until now.
    """
    if _CONFIRMED in request.POST:
        return None
    sent = [(field, value) for field, values in request.POST.lists() for value in values]
    hidden = [one for one in sent if one[0] != "csrfmiddlewaretoken"]
    return _question_page(shown, request, question, [name], [*hidden, (_CONFIRMED, "yes")])


def given_reason(request: HttpRequest) -> str:
    """The reason that was typed on the page that asks."""
    return request.POST.get(_REASON, "").replace("\x00", "").strip()


def names_rows(shown: ShownRows, request: HttpRequest) -> bool:
    """Whether all that was chosen can be a row's id; otherwise it says so."""
    try:
        for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
            shown.opts.pk.to_python(key)
    except ValidationError:
        messages.error(request, _("A row that you chose does not exist. Choose the rows again."))
        return False
    return True


def _run(
    action: _RowAction,
    shown: ShownRows,
    request: HttpRequest,
    chosen: models.QuerySet[Any],
) -> HttpResponse | None:
    rows = list(chosen[: action.most + 1])
    if len(rows) > action.most:
        message = _(
            "You chose %(count)s rows. Choose at most %(most)s at once. Nothing was changed."
        )
        counts = {"count": whole(chosen.count()), "most": whole(action.most)}
        messages.error(request, message % counts)
        return None
    is_confirmed = action.question is None or _CONFIRMED in request.POST
    if rows and not is_confirmed:
        return _ask(action, shown, request, rows)
    done, refused = 0, _Refusals()
    for row in rows:
        name = shown.row_name(row)
        try:
            with transaction.atomic() if action.is_atomic else nullcontext():
                if action.is_atomic:
                    _hold(request, row)
                action.act(shown, request, row)
        except DomainError as error:
            refused.add(name, error.message)
        else:
            done += 1
    if done and action.done is not None:
        messages.success(request, action.done % {"count": done})
    refused.tell(request)
    _tell_missing(request, len(rows))
    return None


def _hold(request: HttpRequest, row: models.Model) -> None:
    try:
        hold(request, row)
    except NotFound as error:
        raise NotFound(_("It does not exist any more.")) from error


def _ask(
    action: _RowAction, shown: ShownRows, request: HttpRequest, rows: Sequence[Any]
) -> HttpResponse:
    """Show the page that names the rows and says what will happen. Its form names the same rows, whatever comes meanwhile."""
    assert action.question is not None
    chosen = [(ACTION_CHECKBOX_NAME, row.pk) for row in rows]
    hidden = [("action", action.name), (_CONFIRMED, "yes"), *chosen]
    names = [shown.row_name(row) for row in rows]
    return _question_page(shown, request, action.question, names, hidden)


def _question_page(
    shown: ShownRows,
    request: HttpRequest,
    question: ConfirmQuestion,
    names: Sequence[str],
    hidden: Sequence[tuple[str, Any]],
) -> HttpResponse:
    heading = question.asked % {"count": len(names)}
    context = {
        **shown.admin_site.each_context(request),
        "title": heading,
        "opts": shown.opts,
        "question": question,
        "heading": heading,
        "names": names[:_MOST_NAMED],
        "others": max(0, len(names) - _MOST_NAMED),
        "hidden": hidden,
        "list_url": request.get_full_path(),
    }
    return TemplateResponse(request, "admin/confirm_action.html", context)


class _Refusals:
    """Why rows were refused, each reason with the rows that it is about."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, name: str, why: str) -> None:
        """Note a row."""
        self._names.setdefault(why, []).append(name)

    def tell(self, request: HttpRequest) -> None:
        """Say it on the page."""
        reasons = list(self._names.items())
        for why, names in reasons[:_MOST_REASONS]:
            messages.error(request, _("%(rows)s: %(why)s") % {"rows": _in_words(names), "why": why})
        if rest := sum(len(names) for _why, names in reasons[_MOST_REASONS:]):
            message = ngettext(
                "%(count)s more row was refused. Choose fewer rows to read why.",
                "%(count)s more rows were refused. Choose fewer rows to read why.",
                rest,
            )
            messages.error(request, message % {"count": rest})


def _in_words(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    if len(names) <= _MOST_NAMED:
        return shown
    return _("%(rows)s and %(count)s more") % {"rows": shown, "count": len(names) - _MOST_NAMED}


def _tell_missing(request: HttpRequest, found: int) -> None:
    """Say how many rows were chosen that the list does not have any more."""
    missing = len(set(request.POST.getlist(ACTION_CHECKBOX_NAME))) - found
    if request.POST.get("select_across") == "1" or missing <= 0:
        return
    message = ngettext(
        "%(count)s row that you chose is gone, or the list's filters no longer show it. Nothing happened to it.",
        "%(count)s rows that you chose are gone, or the list's filters no longer show them. Nothing happened to them.",
        missing,
    )
    messages.warning(request, message % {"count": missing})
