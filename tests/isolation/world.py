"""Two workspaces with one row of every kind; every text of the second is a canary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome
from audit.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    AuditBody,
    AuditHistogram,
    AuditPolicy,
    AuditRollup,
    AuditStream,
    LegalHold,
    Notice,
    PendingErasure,
    ReportSchedule,
    SavedView,
    SentFile,
    SignOff,
    StreamState,
)
from audit.services import EntryDraft, Ref, record
from chat.artifacts.storage import store
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Bud,
    BudCheck,
    BudVersion,
    ChatImport,
    CheckPlan,
    CheckResult,
    CheckRun,
    Conversation,
    DataCopy,
    DataCopyPart,
    Draft,
    FileReading,
    Folder,
    KnowledgeFile,
    KnowledgePassage,
    KnowledgePreparation,
    MemberSpendingLimit,
    Message,
    ModelProvider,
    ModelRequest,
    MonthlySpending,
    PassageVector,
    Pin,
    ProviderList,
    ProviderModel,
    PushDevice,
    PushMessage,
    QueuedMessage,
    ReminderChoice,
    ReminderMail,
    SharedChat,
    SharedChatReader,
    SharedChatText,
    SharedProvider,
    SpendingHold,
    SpendingPolicy,
    ToolCall,
    Turn,
    WebhookDelivery,
    WebhookEndpoint,
)
from chat.providers.known_lists import digest_of
from chat.services.sharing import hash_of
from chat.shared_document import SharedDocument, SharedFile, SharedMessage
from chat.values import (
    ArtifactOrigin,
    MessageRole,
    MessageStatus,
    Rating,
    ToolCallStatus,
    TurnStatus,
    WebhookEvent,
)
from mcp_servers.endpoint.sign_in.proofs import proof_of
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.models import (
    ActionRule,
    Approval,
    CallCount,
    CallRule,
    CatalogueChoice,
    ClientSignIn,
    ClientToken,
    HealthCheck,
    InputRequest,
    KnownClient,
    KnownVia,
    McpPrompt,
    McpResource,
    McpServer,
    McpTool,
    OAuthAttempt,
    OAuthClient,
    OAuthGrant,
    ServerIcon,
    TokenKind,
    ToolPermission,
    ToolSighting,
    TraceMessage,
)
from tests.factories import CANARY, Tenant, make_tenant
from workspaces.actors import Source
from workspaces.delivery.web_push import vapid_keys
from workspaces.models import (
    AccessRequest,
    ApiToken,
    IdempotentRequest,
    Invitation,
    JoinLink,
    Membership,
    PersonPicture,
    RequestKind,
    SavedListView,
    WorkspaceSession,
)

BROWSER_KEY = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
)
"""A browser's public key; that of the example in RFC 8291."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One workspace and its rows, one of each kind, which belong to its member where they are personal."""

    tenant: Tenant
    rows: Mapping[str, models.Model]
    sessions: dict[str, str] = field(default_factory=dict)
    """Keys of the sessions in which people are signed in, by role."""

    def __getitem__(self, name: str) -> Any:
        return self.rows[name]

    @property
    def slug(self) -> str:
        return self.tenant.workspace.slug

    def sign_in(self) -> None:
        """Sign everybody in, so that each walk need not do it anew."""
        for role in self.tenant.people:
            cookie = self.tenant.client(role).cookies[settings.SESSION_COOKIE_NAME]
            self.sessions[role] = cookie.value

    def client(self, role: str, **defaults: Any) -> Client:
        """A browser in which that person is signed in."""
        client = Client(**defaults)
        client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[role]
        return client


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Both sides. `a` looks, `b` must not be seen."""

    a: Side
    b: Side


def make_world() -> World:
    """Build both sides."""
    return World(a=make_side("a", "seen"), b=make_side(CANARY, CANARY))


def make_side(slug: str, text: str) -> Side:
    """Build one workspace with one row of every kind; ``text`` is part of every string in it."""
    tenant = make_tenant(slug, text)
    workspace, member = tenant.workspace, tenant.member
    soon = timezone.now() + timedelta(days=1)
    header: Any = {"Authorization": f"Bearer {text}-header"}
    server = McpServer.objects.create(
        workspace=workspace,
        name=f"{text}-server",
        transport="streamable_http",
        url=f"https://{text}.example.org/mcp",
        headers=header,
        is_active=False,  # nothing in the background may call it
    )
    server.state.write(instructions=f"{text} instructions", status_reason=f"{text} reason")
    digest = sha256(text.encode()).hexdigest()
    tool = McpTool.objects.create(
        workspace=workspace,
        server=server,
        name=f"{text}_tool",
        title=f"{text} tool",
        description=f"{text} description",
        input_schema={"type": "object"},
        definition_hash=digest,
        approved_hash=digest,
        last_seen_at=timezone.now(),
    )
    ServerIcon.objects.create(
        workspace=workspace, server=server, source_hash="0" * 64, content=b"png", digest="0" * 16
    )
    check = HealthCheck.objects.create(
        workspace=workspace,
        server=server,
        checked_at=timezone.now(),
        is_ok=False,
        error=f"{text} error",
    )
    provider = ModelProvider.objects.create(
        workspace=workspace,
        name=f"{text} provider",
        base_url=f"https://{text}-model.example.org/v1",
        api_key=f"{text}-key",
        default_model=f"{text}-model",
    )
    priced = ProviderModel.objects.create(
        workspace=workspace, provider=provider, model=f"{text}-model"
    )
    listed = ProviderList.objects.create(
        workspace=workspace,
        provider=provider,
        address_digest=digest_of(provider.base_url),
        asked_at=soon,
        listed_at=soon,
        names=[f"{text}-model"],
        changes={"gone": {f"{text}-gone": "2026-11-24"}, "new": {f"{text}-new": "2026-11-24"}},
    )
    # One row of the platform behind both sides: nobody in a workspace may see its address and key.
    behind, _made = SharedProvider.objects.get_or_create(
        name="Shared",
        defaults={
            "base_url": f"https://shared-{CANARY}.example.org/v1".lower(),
            "api_key": f"{CANARY}-shared-key",
            "default_model": "m",
        },
    )
    shared = ModelProvider.objects.create(
        workspace=workspace, name=f"{text} shared", shared=behind, base_url="", default_model="m"
    )
    bud = Bud.objects.create(
        workspace=workspace,
        slug=f"{text}-bud",
        name=f"{text} bud",
        description=f"{text} description",
        system_prompt=f"{text} prompt",
        provider=provider,
        mcp_config={"servers": [str(server.pk)]},
        has_knowledge=True,
    )
    BudVersion.objects.create(
        workspace=workspace,
        bud=bud,
        number=1,
        values={"name": f"{text} earlier name"},
        made_by=f"{text} maker",
        note=f"{text} note",
    )
    known = KnowledgeFile.objects.create(
        workspace=workspace,
        bud=bud,
        name=f"{text} handbook.md",
        content_type="text/markdown",
        size=1,
        sha256="0" * 64,
        path=store(workspace.pk, f"{text} knows".encode()).path,
        characters=1,
        lines=1,
        outline=[[f"{text} chapter", 1]],
        added_by=f"{text} editor",
    )
    KnowledgePassage.objects.create(
        workspace=workspace,
        file=known,
        position=0,
        first_line=1,
        last_line=1,
        text=f"{text} passage",
    )
    preparation = KnowledgePreparation.objects.create(
        workspace=workspace,
        file=known,
        provider=provider,
        model=f"{text} embedding model",
        passages=1,
        fault=f"{text} fault of an embedding",
        due_at=soon,
    )
    PassageVector.objects.create(
        workspace=workspace, preparation=preparation, position=0, signs=b"\0", numbers=b"\1\1"
    )
    bud_check = BudCheck.objects.create(
        workspace=workspace,
        bud=bud,
        question=f"{text} question to check",
        contains=[f"{text} expected words"],
        criterion=f"{text} criterion",
        recordings=[{"tool": "a", "result": f"{text} recorded"}],
    )
    CheckPlan.objects.create(
        workspace=workspace,
        bud=bud,
        every="day",
        person=member,
        next_at=soon,
        trouble=f"{text} trouble with checks",
    )
    check_run = CheckRun.objects.create(
        workspace=workspace,
        bud=bud,
        version=1,
        person=member,
        total=1,
        status="completed",
        note=f"{text} run note",
    )
    CheckResult.objects.create(
        workspace=workspace,
        run=check_run,
        bud_check=bud_check,
        expected={"question": f"{text} question to check"},
        status="failed",
        faults=[f"{text} fault"],
        answer=f"{text} checked answer",
    )
    folder = Folder.objects.create(workspace=workspace, owner=member, name=f"{text} folder")
    chat_import = ChatImport.objects.create(
        workspace=workspace,
        owner=member,
        bud=bud,
        file_name=f"{text} export.zip",
        status="done",
        left_out=1,
        reasons=[{"title": f"{text} left out", "reason": f"{text} reason"}],
        error=f"{text} fault of a file",
    )
    data_copy = DataCopy.objects.create(
        workspace=workspace,
        owner=member,
        status="ready",
        missing=[{"chat": f"{text} chat of a copy", "file": f"{text} lost file"}],
        error=f"{text} fault of a copy",
    )
    kept = store(workspace.pk, f"{text} copied data".encode())
    DataCopyPart.objects.create(
        workspace=workspace,
        copy=data_copy,
        number=1,
        path=kept.path,
        size=kept.size,
        sha256=kept.sha256,
    )
    conversation = Conversation.objects.create(
        workspace=workspace,
        owner=member,
        bud=bud,
        title=f"{text} conversation",
        folder=folder,
        chat_import=chat_import,
    )
    draft = Draft.objects.create(
        workspace=workspace,
        owner=member,
        conversation=conversation,
        text=f"{text} draft",
        written_at=soon,
    )
    pin = Pin.objects.create(workspace=workspace, owner=member, bud=bud)
    reminders = ReminderChoice.objects.create(
        workspace=workspace, owner=member, time_zone=f"{text} zone"
    )
    push_device = PushDevice.objects.create(
        workspace=workspace,
        owner=member,
        name=f"{text} device",
        endpoint=f"https://push.example.org/{text}".replace(" ", "-"),
        endpoint_digest=sha256(text.encode()).hexdigest(),
        p256dh=BROWSER_KEY,
        auth="A" * 22,
        key_id=vapid_keys()[0].id,
        told_until=soon,
        last_error=f"{text} push error",
    )
    push_message = PushMessage.objects.create(
        workspace=workspace, device=push_device, since=soon, until=soon, next_attempt_at=soon
    )
    reminder = ReminderMail.objects.create(
        workspace=workspace,
        owner=member,
        since=soon,
        until=soon,
        next_attempt_at=soon,
        last_error=f"{text} reminder error",
    )
    asked_model = ModelRequest.objects.create(
        workspace=workspace, provider=provider, alive_until=soon
    )
    # Far from reached: other walks ask models.
    policy = SpendingPolicy.objects.create(
        workspace=workspace, tokens=10**12, member_tokens=10**12, time_zone="Europe/Zurich"
    )
    member_limit = MemberSpendingLimit.objects.create(
        workspace=workspace, person=member, tokens=10**12
    )
    held = SpendingHold.objects.create(
        workspace=workspace, person=member.pk, tokens=1, cost=0, shared_cost=0, alive_until=soon
    )
    spent = MonthlySpending.objects.create(
        workspace=workspace, month=202611, subject=member.pk, person=member, tokens=1, requests=1
    )
    message = Message.objects.create(
        workspace=workspace,
        conversation=conversation,
        role=MessageRole.USER.value,
        text=f"{text} question",
        status=MessageStatus.COMPLETE.value,
        order_key=1,
        client_id=f"{text}-client",
    )
    turn = Turn.objects.create(
        workspace=workspace,
        conversation=conversation,
        user_message=message,
        asked_by=member,
        source=Source.CHAT.value,
        status=TurnStatus.WAITING_FOR_APPROVAL.value,
        rating=Rating.BAD.value,
        rating_reason=f"{text} reason",
        rated_at=soon,
    )
    answer = Message.objects.create(
        workspace=workspace,
        conversation=conversation,
        turn=turn,
        parent=message,
        role=MessageRole.ASSISTANT.value,
        step=1,
        text=f"{text} answer",
        status=MessageStatus.COMPLETE.value,
        order_key=2,
    )
    call = ToolCall.objects.create(
        workspace=workspace,
        turn=turn,
        message=answer,
        position=0,
        provider_call_id=f"{text}-call",
        function_name=f"{text}_function",
        server_id=server.pk,
        server_name=server.name,
        tool_id=tool.pk,
        tool_name=tool.name,
        definition_hash=digest,
        input_schema={"type": "object"},
        arguments={"text": f"{text} argument"},
        proposed_arguments={"text": f"{text} argument"},
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        approval_rule="unknown",
        approval_reason=f"{text} reason",
        approval_expires_at=soon,
    )
    asked = InputRequest.objects.create(
        workspace=workspace,
        call_id=call.pk,
        conversation_id=conversation.pk,
        turn_id=turn.pk,
        asked_of=member,
        server_id=server.pk,
        server_name=server.name,
        tool_name=tool.name,
        kind="form",
        key=f"{text}-key",
        fingerprint=digest,
        message=f"{text} question",
        schema={"type": "object", "properties": {}},
        expires_at=soon,
    )
    resource = McpResource.objects.create(
        workspace=workspace,
        server=server,
        uri=f"note://{text}",
        name=f"{text} resource",
        last_seen_at=timezone.now(),
    )
    prompt = McpPrompt.objects.create(
        workspace=workspace, server=server, name=f"{text}_prompt", last_seen_at=timezone.now()
    )
    attachment = Attachment.objects.create(
        workspace=workspace,
        message=message,
        position=0,
        server_id=server.pk,
        server_name=server.name,
        resource_id=resource.pk,
        uri=resource.uri,
        title=f"{text} resource",
        content=[{"type": "text", "text": f"{text} content"}],
        model_text=f"{text} content",
    )
    queued = QueuedMessage.objects.create(
        workspace=workspace,
        conversation=conversation,
        client_id=f"{text}-queued",
        text=f"{text} next question",
        order_key=1,
        asked_by=member,
        source=Source.CHAT.value,
    )
    artifact = Artifact.objects.create(
        workspace=workspace, conversation=conversation, name=f"{text}.html", newest=1
    )
    page = store(workspace.pk, f"<p>{text} page</p>".encode())
    version = ArtifactVersion.objects.create(
        workspace=workspace,
        artifact=artifact,
        number=1,
        content_type="text/html",
        size=page.size,
        sha256=page.sha256,
        path=page.path,
        origin=ArtifactOrigin.UPLOAD.value,
        made_by=member,
    )
    shared_chat = SharedChat.objects.create(
        workspace=workspace,
        owner=member,
        conversation=conversation,
        audience="workspace",
        token_hash=hash_of(f"token-of-{slug}"),
        token=f"token-of-{slug}",
        with_files=True,
        expires_at=soon,
        shared_at=timezone.now(),
    )
    shared_text = SharedChatText.objects.create(
        workspace=workspace,
        shared=shared_chat,
        end=message.pk,
        document=SharedDocument(
            title=f"{text} shared title",
            bud=f"{text} bud",
            avatar="",
            messages=[
                SharedMessage(
                    role=MessageRole.USER,
                    text=f"{text} shared words",
                    created_at=timezone.now(),
                    files=[
                        SharedFile(
                            artifact_id=artifact.pk,
                            number=1,
                            name=artifact.name,
                            content_type="text/html",
                            size=page.size,
                        )
                    ],
                )
            ],
        ).model_dump(mode="json"),
    )
    shared_reader = SharedChatReader.objects.create(
        workspace=workspace, shared=shared_chat, person=member
    )
    FileReading.objects.create(
        workspace=workspace,
        version=version,
        text_path=page.path,
        outline=[[f"{text} heading", 1]],
    )
    AuditPolicy.objects.create(workspace=workspace)
    AuditBody.objects.create(entry_id=uuid7(), workspace_id=workspace.pk, key=f"{text}-key")
    hold = LegalHold.objects.create(
        workspace_id=workspace.pk,
        reason=text,
        placed_by=text,
        released_by=text,
        released_at=timezone.now(),
    )
    PendingErasure.objects.create(
        workspace_id=workspace.pk, person_id=uuid7(), asked_at=timezone.now()
    )
    counted = {"workspace_id": workspace.pk, "start": timezone.now(), "value": text, "count": 1}
    AuditRollup.objects.create(
        **counted, dimension="all", grain="h", timed=0, duration_ms=0, waited=0, wait_ms=0
    )
    AuditHistogram.objects.create(
        **counted, dimension="all", grain="h", measure="duration", bucket=1
    )
    view = SavedView.objects.create(
        workspace=workspace, owner=tenant.auditor, name=text, page="log", is_shared=True
    )
    schedule = ReportSchedule.objects.create(
        workspace=workspace,
        name=text,
        made_by=tenant.auditor,
        format="csv",
        cadence="daily",
        delivery="mail",
        recipients=[str(tenant.auditor.pk)],
        next_run_at=soon,
    )
    sent_file = SentFile.objects.create(
        workspace=workspace,
        schedule=schedule,
        name=text,
        format="csv",
        time_zone="UTC",
        since=timezone.now() - timedelta(days=1),
        until=timezone.now(),
        sent_to=[f"{text}@example.org"],
        entries=1,
        status=SentFile.Status.SENT,
    )
    sign_off = SignOff.objects.create(
        workspace_id=workspace.pk,
        sent_file_id=sent_file.pk,
        since=timezone.now(),
        until=soon,
        note=text,
        signed_by=text,
        entry_id=uuid7(),
    )
    stream = AuditStream.objects.create(
        workspace=workspace,
        name=f"{text} stream",
        kind=AuditStream.Kind.WEBHOOK,
        target=f"https://{text}-sink.example.org/",
        secret=f"{text}-stream-key",
        is_paused=True,  # nothing in the background may send
    )
    StreamState.objects.create(stream=stream, last_error=f"{text} error")
    rule = AlertRule.objects.create(
        workspace=workspace,
        name=f"{text} rule",
        condition=AlertRule.Condition.TIMEOUT,
        threshold=1,
        is_active=False,
        emails=[f"{text}@example.org"],
    )
    alert = Alert.objects.create(
        workspace=workspace,
        rule=rule,
        started_at=timezone.now(),
        ended_at=timezone.now(),
        value=1,
        peak=1,
        told_at=timezone.now(),
    )
    AlertDelivery.objects.create(
        workspace=workspace,
        rule=rule,
        channel=AlertDelivery.Channel.EMAIL,
        target=f"{text}@example.org",
        payload={"text": text},
        status=AlertDelivery.Status.GIVEN_UP,
        next_attempt_at=timezone.now(),
    )
    notice = Notice.objects.create(
        workspace=workspace, user=member, kind="alert", title=f"{text} notice"
    )
    webhook = WebhookEndpoint.objects.create(
        workspace=workspace,
        url=f"https://{text}-hook.example.org/",
        secret=f"{text}-hook-key",
        events=[WebhookEvent.TURN_FINISHED.value],
    )
    delivery = WebhookDelivery.objects.create(
        workspace=workspace,
        endpoint=webhook,
        event=WebhookEvent.TURN_FINISHED.value,
        payload={"text": text},
        next_attempt_at=timezone.now() + timedelta(days=1),
    )
    permission = ToolPermission.objects.create(
        workspace=workspace, user=member, tool=tool, definition_hash=digest
    )
    trace = TraceMessage.objects.create(
        workspace=workspace,
        server=server,
        at=timezone.now(),
        principal="workspace",
        connection="1",
        direction="event",
        kind="event",
        text=f"{text} trace",
    )
    issuer = f"https://{text}-issuer.example.org"
    endpoints = {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/token",
        "endpoint": server.url,
        "resource": server.url,
        "scope": text,
    }
    client = OAuthClient.objects.create(
        workspace=workspace,
        server=server,
        issuer=issuer,
        kind="dynamic",
        client_id=f"{text}-client",
        client_secret=f"{text}-client-secret",
        redirect_uris=["https://trellis.example.org/callback"],
        resource=server.url,
        metadata={"issuer": issuer, "token_endpoint": f"{issuer}/token"},
    )
    tokens: Any = {"access_token": f"{text}-access-token"}
    grant = OAuthGrant.objects.create(
        workspace=workspace,
        server=server,
        user=member,
        granted_by=member,
        client=client,
        tokens=tokens,
        account=f"{text}@issuer.example.org",
        granted_at=timezone.now(),
        **endpoints,
    )
    OAuthAttempt.objects.create(
        workspace=workspace,
        server=server,
        client=client,
        user=member,
        state_hash=digest,
        session_hash=digest,
        verifier=f"{text}-verifier",
        redirect_uri=client.redirect_uris[0],
        expires_at=soon,
        **endpoints,
    )
    ToolSighting.objects.create(
        workspace=workspace, server=server, user=member, tool=tool, definition_hash=digest
    )
    CatalogueChoice.objects.create(workspace=workspace, source="known", slug=text)
    klavis_account = KlavisAccount.objects.create(
        workspace=workspace,
        base_url=f"https://{text}-klavis.example.org",
        api_key=f"{text}-klavis-key",
        is_active=False,  # nothing in the background may ask it
        user_key=f"{text}-user-key",
    )
    klavis_instance = KlavisInstance.objects.create(
        workspace=workspace,
        user=member,
        begun_by=member,
        server_name=f"{text} service",
        title=f"{text} service",
        instance_id=f"{text}-instance",
        server_url=f"https://{text}-hosted.example.org/mcp/?instance_id={text}",
        state="failed",
        reason=f"{text} reason",
    )
    klavis_removal = KlavisRemoval.objects.create(
        workspace_id=workspace.pk,
        base_url=f"https://{text}-klavis.example.org",
        dialect="current",
        api_key=f"{text}-klavis-key",
        kind="instance",
        remote_id=f"{text}-gone",
        label=f"{text} service",
        next_attempt_at=soon,
    )
    action_rule = ActionRule.objects.create(
        workspace=workspace,
        server=server,
        key=digest,
        service=f"{text} service",
        action=f"{text} action",
        effect="deny",
    )
    call_rule = CallRule.objects.create(
        workspace=workspace,
        name=f"{text} call rule",
        reason=f"{text} reason of a rule",
        servers=[f"{text} no such server"],
        tools=[f"{text} no such tool"],
        effect="deny",
    )
    count = CallCount.objects.create(
        workspace=workspace, server_id=server.pk, day=timezone.now().date(), used=1
    )
    approval = Approval.objects.create(
        workspace=workspace,
        call_id=call.pk,
        server_id=server.pk,
        tool_id=tool.pk,
        definition_hash=digest,
        arguments_hash=digest,
        principal=f"workspace:{workspace.pk}",
        requester_id=member.pk,
        approver_id=member.pk,
        approver_label=member.email,
        expires_at=soon,
    )
    invitation = Invitation.objects.create(
        workspace=workspace,
        email=f"{text}-guest@example.org",
        token_hash=sha256(f"{text}-token".encode()).hexdigest(),
        invited_by=tenant.admin,
        expires_at=soon,
    )
    join_link = JoinLink.objects.create(
        workspace=workspace,
        email_domain=f"{text}.example.org".lower(),
        token_hash=sha256(f"{text}-join".encode()).hexdigest(),
        hint=text[:6],
        most_uses=5,
        made_by=tenant.admin,
        expires_at=soon,
    )
    list_view = SavedListView.objects.create(
        workspace=workspace,
        owner=member,
        list="workspaces.membership",
        name=text,
        query="role__exact=member",
        is_shared=True,
    )
    access_request = AccessRequest.objects.create(
        workspace=workspace,
        requester=member,
        kind=RequestKind.TOOL,
        name=f"{text} tool",
        reason=f"{text} reason",
    )
    browser_session = WorkspaceSession.objects.create(
        workspace=workspace,
        user=member,
        session=Session.objects.create(session_key=f"{text[:30]}-x", expire_date=soon),
        user_agent=f"{text} Firefox/1",
        last_seen_at=timezone.now(),
    )
    token = ApiToken.objects.create(
        workspace=workspace,
        user=member,
        name=f"{text} token",
        token_hash=sha256(f"{text}-plain".encode()).hexdigest(),
        hint=text[:8],
        scopes=["chat"],
        expires_at=soon,
    )
    client_sign_in = ClientSignIn.objects.create(
        workspace=workspace,
        client=KnownClient.objects.create(
            client_id=f"{text}-client",
            via=KnownVia.REGISTRATION,
            name=f"{text} client",
            redirect_uris=[f"https://{slug}.example.org/callback"],
            read_at=timezone.now(),
            used_at=timezone.now(),
        ),
        user=member,
        client_name=f"{text} client",
        redirect_uri=f"https://{slug}.example.org/callback",
        redirect_host=f"{slug}.example.org",
        scopes=["mcp:call"],
        resource=f"https://{slug}.example.org/mcp/",
        proof=proof_of(member),
        begun_at=timezone.now(),
        last_used_at=timezone.now(),
        expires_at=soon,
    )
    ClientToken.objects.create(
        workspace=workspace,
        sign_in=client_sign_in,
        kind=TokenKind.ACCESS,
        token_hash=sha256(f"{text}-access".encode()).hexdigest(),
        expires_at=soon,
    )
    repeated = IdempotentRequest.objects.create(
        workspace=workspace,
        user=member,
        key=f"{text}-key",
        fingerprint=digest,
        status_code=201,
        body={"text": text},
    )
    entry = record(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            actor=tenant.actor("member", Source.CHAT),
            workspace_id=workspace.pk,
            call_id=uuid7(),
            server=Ref(id=server.pk, name=server.name),
            tool=Ref(id=tool.pk, name=tool.name),
            outcome=Outcome.OK,
            arguments=f'{{"text": "{text} argument"}}'.encode(),
            result=f'{{"text": "{text} result"}}'.encode(),
            duration_ms=5,
        )
    )
    membership = Membership.objects.for_workspace(workspace).get(user=member)
    PersonPicture.objects.create(user=member, content=text.encode())
    return Side(
        tenant=tenant,
        rows={
            "server": server,
            "klavis_account": klavis_account,
            "klavis_instance": klavis_instance,
            "klavis_removal": klavis_removal,
            "action_rule": action_rule,
            "call_rule": call_rule,
            "tool": tool,
            "check": check,
            "provider": provider,
            "shared": shared,
            "priced": priced,
            "listed": listed,
            "queued": queued,
            "artifact": artifact,
            "version": version,
            "view": view,
            "list_view": list_view,
            "schedule": schedule,
            "sent_file": sent_file,
            "sign_off": sign_off,
            "stream": stream,
            "rule": rule,
            "alert": alert,
            "notice": notice,
            "webhook": webhook,
            "delivery": delivery,
            "bud": bud,
            "folder": folder,
            "bud_check": bud_check,
            "check_run": check_run,
            "known": known,
            "draft": draft,
            "reminders": reminders,
            "reminder": reminder,
            "push_device": push_device,
            "push_message": push_message,
            "asked_model": asked_model,
            "pin": pin,
            "shared_chat": shared_chat,
            "shared_text": shared_text,
            "shared_reader": shared_reader,
            "spending_policy": policy,
            "member_limit": member_limit,
            "spent": spent,
            "spending_held": held,
            "chat_import": chat_import,
            "data_copy": data_copy,
            "conversation": conversation,
            "message": message,
            "turn": turn,
            "answer": answer,
            "call": call,
            "input": asked,
            "resource": resource,
            "prompt": prompt,
            "attachment": attachment,
            "permission": permission,
            "trace": trace,
            "approval": approval,
            "count": count,
            "grant": grant,
            "invitation": invitation,
            "join_link": join_link,
            "access_request": access_request,
            "browser_session": browser_session,
            "token": token,
            "client_sign_in": client_sign_in,
            "repeated": repeated,
            "entry": entry,
            "membership": membership,
            "hold": hold,
        },
    )
