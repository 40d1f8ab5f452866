"""Routes of workspaces and of their people."""

from __future__ import annotations

from django.urls import path

from workspaces.pages import members, people, requests, settings, views

app_name = "workspaces"
urlpatterns = [
    path("", views.index, name="index"),
    path("setup/", views.setup, name="setup"),
    path("setup/<str:token>/", views.open_setup, name="open_setup"),
    path("invitations/accept/", views.accept, name="accept_invitation"),
    path("invitations/<str:token>/", views.open_invitation, name="invitation"),
    path("join/", views.join, name="join"),
    path("join/<str:token>/", views.open_join_link, name="join_link"),
    path("account/", settings.profile, name="profile"),
    path("account/picture/", settings.picture, name="picture"),
    path("account/appearance/", settings.appearance, name="appearance"),
    path("account/formats/", settings.formats, name="formats"),
    path("account/shortcuts/", settings.shortcuts, name="shortcuts"),
    path("account/workspaces/", settings.all_workspaces, name="all"),
    path("account/sessions/", settings.sessions, name="sessions"),
    path("account/tokens/", views.tokens, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke/", views.revoke, name="revoke_token"),
    path("w/<slug:workspace_slug>/leave/", settings.leave, name="leave"),
    path("w/<slug:workspace_slug>/people/link/", people.make_link, name="make_join_link"),
    path(
        "w/<slug:workspace_slug>/people/link/<uuid:link_id>/revoke/",
        people.revoke_link,
        name="revoke_join_link",
    ),
    path("w/<slug:workspace_slug>/requests/", requests.requests, name="requests"),
    path(
        "w/<slug:workspace_slug>/requests/<uuid:request_id>/<slug:verb>/",
        requests.change_request,
        name="request_change",
    ),
    path(
        "w/<slug:workspace_slug>/people/pictures/<uuid:user_id>/",
        members.picture,
        name="member_picture",
    ),
    path("w/<slug:workspace_slug>/people/", members.members, name="members"),
    path("w/<slug:workspace_slug>/people/<uuid:membership_id>/", members.member, name="member"),
    path(
        "w/<slug:workspace_slug>/people/<uuid:membership_id>/access/",
        members.member_access,
        name="member_access",
    ),
    path(
        "w/<slug:workspace_slug>/people/<uuid:membership_id>/<slug:verb>/",
        members.change_member,
        name="member_change",
    ),
    path("w/<slug:workspace_slug>/people/invite/", people.invite, name="invite"),
    path(
        "w/<slug:workspace_slug>/people/invitations/<uuid:invitation_id>/<slug:verb>/",
        people.change_invitation,
        name="invitation_change",
    ),
    path("w/<slug:workspace_slug>/admin/", views.open_admin, name="open_admin"),
]
