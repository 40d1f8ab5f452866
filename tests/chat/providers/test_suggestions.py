"""The well-known providers and models that the forms suggest."""

from __future__ import annotations

from datetime import date
from urllib.parse import urlsplit

import pytest
from django.urls import reverse

from chat.providers import list_prices, model_ends
from chat.providers.suggestions import HOSTED, LOCAL, Suggestion, suggested_models
from tests.factories import Tenant
from workspaces.models import User
from workspaces.outbound import HTTP_SCHEMES, parse_endpoint


@pytest.mark.parametrize("known", [*HOSTED, *LOCAL], ids=lambda known: known.provider)
def test_every_suggestion_can_be_used(known: Suggestion) -> None:
    """REL-981: as it stands, so that nobody who chooses it has to mend it."""
    parse_endpoint(known.value, schemes=HTTP_SCHEMES)
    assert not known.value.endswith("/")


def test_whatever_provider_is_known_by_its_prices_is_suggested() -> None:
    """REL-981: so that its prices and its models' last days apply to what is chosen."""
    suggested = {urlsplit(one.value).hostname for one in HOSTED}
    assert {one.host for one in list_prices._LISTS} <= suggested
    assert {host for host, _model in model_ends._END_OF} <= suggested


def test_models_are_suggested_for_as_long_as_they_answer() -> None:
    """REL-981: each once, and no embedding models."""
    before = [one.value for one in suggested_models(date(2026, 12, 10))]
    after = [one.value for one in suggested_models(date(2026, 12, 11))]
    assert set(before) - set(after) == {"gpt-5", "gpt-5-mini", "gpt-5-nano", "o3"}
    assert len(before) == len(set(before))
    assert not [name for name in before if "embedding" in name]


@pytest.mark.django_db
def test_whoever_adds_a_provider_chooses_its_address_by_name(
    tenant: Tenant, superuser: User
) -> None:
    """REL-981: local ones are suggested to the platform's owner alone; a workspace may not reach them."""
    client = tenant.client("admin")
    page = client.get(reverse("admin:chat_modelprovider_add")).content.decode()
    gemini = HOSTED[2]
    option = f'<option value="{gemini.value}">{gemini.provider}</option>'
    model = '<option value="claude-opus-5-5">Anthropic</option>'
    assert option in page
    assert model in page
    assert 'list="base_url-suggestions"' in page
    assert 'list="default_model-suggestions"' in page
    assert LOCAL[0].value not in page
    client.force_login(superuser)
    shared = client.get(reverse("chat:shared_provider_new")).content.decode()
    assert option in shared
    assert model in shared
    assert f'<option value="{LOCAL[0].value}"' in shared
