"""A second language for one test. Trellis ships in one, and its texts are ready for others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.utils import translation
from django.utils.translation import trans_real
from pytest_django.fixtures import Settings


def translate(texts: Mapping[str, str], settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the given texts in another language; give its name, to be used with `override`."""
    settings.USE_I18N = True
    monkeypatch.setattr(translation, "_trans", type(translation._trans)())  # type: ignore[attr-defined]
    catalogue = trans_real.translation("de")._catalog._catalogs[0]  # type: ignore[attr-defined]
    for text, translated in texts.items():
        monkeypatch.setitem(catalogue, text, translated)
    return "de"
