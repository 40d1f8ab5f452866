"""The addresses of well-known providers, which the forms suggest."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django.urls import reverse

from chat.providers import list_prices, model_ends
from chat.providers.known_addresses import HOSTED, LOCAL, KnownAddress
from tests.factories import Tenant
from workspaces.models import User
from workspaces.outbound import HTTP_SCHEMES, parse_endpoint


@pytest.mark.parametrize("known", [*HOSTED, *LOCAL], ids=lambda known: known.name)
def test_every_suggestion_can_be_used(known: KnownAddress) -> None:
    """REL-981: as it stands, so that nobody who chooses it has to mend it."""
    parse_endpoint(known.base_url, schemes=HTTP_SCHEMES)
    assert not known.base_url.endswith("/")


def test_whatever_provider_is_known_by_its_prices_is_suggested() -> None:
    """REL-981: so that its prices and its models' last days apply to what is chosen."""
    suggested = {urlsplit(one.base_url).hostname for one in HOSTED}
    assert {one.host for one in list_prices._LISTS} <= suggested
    assert {host for host, _model in model_ends._END_OF} <= suggested


@pytest.mark.django_db
def test_whoever_adds_a_provider_chooses_its_address_by_name(
    tenant: Tenant, superuser: User
) -> None:
    """REL-981: local ones are suggested to the platform's owner alone; a workspace may not reach them."""
    client = tenant.client("admin")
    page = client.get(reverse("admin:chat_modelprovider_add")).content.decode()
    gemini = HOSTED[2]
    option = f'<option value="{gemini.base_url}" label="{gemini.name}">'
    assert option in page
    assert 'list="base_url-known"' in page
    assert LOCAL[0].base_url not in page
    client.force_login(superuser)
    shared = client.get(reverse("chat:shared_provider_new")).content.decode()
    assert option in shared
    assert f'<option value="{LOCAL[0].base_url}"' in shared
