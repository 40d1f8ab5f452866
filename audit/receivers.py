"""Changes of configuration and sign-ins become entries."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.signals import password_changed, password_reset, password_set
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from audit.actions import Action
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source
from workspaces.changes import ConfigurationChange, configuration_changed
from workspaces.database.row_security import in_workspace
from workspaces.middleware import actor_for, client_address, find_workspace
from workspaces.models import Workspace
from workspaces.people.single_sign_on import (
    SIGN_IN as SSO,
)


@receiver(configuration_changed)
def record_change(sender: object, change: ConfigurationChange, **kwargs: Any) -> None:
    """In the change's own transaction: what cannot be recorded is rolled back."""
    record(
        EntryDraft(
            action=Action.CONFIG_CHANGED,
            actor=change.actor,
            workspace_id=change.workspace_id,
            details={
                "verb": change.verb,
                "kind": change.kind,
                "id": change.object_id,
                "name": change.object_name,
                "before": change.before,
                "after": change.after,
            },
        )
    )


@receiver(user_logged_in)
def record_sign_in(sender: object, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    _record_auth(Action.AUTH_SIGNED_IN, request, user)


@receiver(user_logged_out)
def record_sign_out(sender: object, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        _record_auth(Action.AUTH_SIGNED_OUT, request, user)


@receiver([password_changed, password_reset, password_set])
def record_password(sender: object, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    before = request.user
    _record_auth(Action.AUTH_PASSWORD_CHANGED, request, user)
    request.user = before  # whoever comes by the link of a mail is not signed in


@receiver(user_login_failed)
def record_failure(
    sender: object, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    name = str(credentials.get("email") or credentials.get("username") or "")[:254]
    step = {"step": credentials["step"]} if "step" in credentials else {}
    _record_failure(request, {"account": name, **step})


@receiver(authentication_failed)
def record_wrong_code(sender: object, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    """Somebody knew the password and not the code."""
    _record_failure(request, {"account": user.email, "step": "code"})


@receiver([authenticator_added, authenticator_removed, authenticator_reset])
def record_two_steps(
    sender: object,
    request: HttpRequest,
    user: Any,
    authenticator: Authenticator,
    signal: Any,
    **kwargs: Any,
) -> None:
    """Recovery codes come and go with the app or the passkey; alone, they are made anew."""
    action = _TWO_STEP_ACTIONS.get((Authenticator.Type(authenticator.type), signal))
    if action is not None:
        _record_auth(action, request, user)


_TWO_STEP_ACTIONS = {
    (Authenticator.Type.TOTP, authenticator_added): Action.AUTH_TWO_STEPS_ON,
    (Authenticator.Type.TOTP, authenticator_removed): Action.AUTH_TWO_STEPS_OFF,
    (Authenticator.Type.WEBAUTHN, authenticator_added): Action.AUTH_PASSKEY_ADDED,
    (Authenticator.Type.WEBAUTHN, authenticator_removed): Action.AUTH_PASSKEY_REMOVED,
    (Authenticator.Type.RECOVERY_CODES, authenticator_reset): Action.AUTH_RECOVERY_CODES,
}


def _record_failure(request: HttpRequest | None, details: dict[str, object]) -> None:
    record(
        EntryDraft(
            action=Action.AUTH_FAILED,
            actor=Actor.anonymous(
                source=Source.WEB,
                ip_address=client_address(request) if request else None,
                request_id=getattr(request, "request_id", ""),
            ),
            workspace_id=None,
            details=details,
        )
    )


def _record_auth(action: Action, request: HttpRequest, user: Any) -> None:
    request.user = user
    workspace = find_workspace(request, slug=None)  # type: ignore[arg-type]  # enriched request
    # Before a sign-in the request reaches no workspace.
    with in_workspace(workspace.pk) if workspace is not None else nullcontext():
        _record_auth_in(workspace, action, request, user)


def _record_auth_in(
    workspace: Workspace | None, action: Action, request: HttpRequest, user: Any
) -> None:
    actor = actor_for(
        user,
        workspace,
        source=Source.WEB,
        ip_address=client_address(request),
        request_id=getattr(request, "request_id", ""),
    )
    if action is Action.AUTH_SIGNED_IN:
        actor = replace(actor, sign_in=_way_in(request, user))
    record(EntryDraft(action=action, actor=actor, workspace_id=actor.workspace_id))


def _way_in(request: HttpRequest, user: Any) -> str:
    """How somebody who has just signed in proved who they are."""
    steps = get_authentication_records(request, user)
    kinds = {step.get("type") for step in steps}
    first = SSO if any(step.get("method") == "socialaccount" for step in steps) else "password"
    if any(step.get("passwordless") for step in steps):
        return "passkey"
    second = next((word for kind, word in _SECOND_STEPS.items() if kind in kinds), "")
    return f"{first}+{second}" if second else first


_SECOND_STEPS = {
    Authenticator.Type.RECOVERY_CODES: "recovery",
    Authenticator.Type.TOTP: "code",
    Authenticator.Type.WEBAUTHN: "passkey",
}
