"""The provider's answers. Fields that are not known are kept, those that are not there have a default.

Source: shapes of the published client, versions 2.0 to 2.20; what an answer cannot do without is required.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_TEXT: Final = 10_000
MAX_LISTED: Final = 2_000


def _text(value: object) -> object:
    """Absent and null are empty; a number is its digits."""
    if value is None:
        return ""
    return str(value)[:MAX_TEXT] if isinstance(value, (str, int, float)) else value


def _flag(value: object) -> object:
    return False if value is None else value


def _list(value: object) -> object:
    return value[:MAX_LISTED] if isinstance(value, list) else []


def _urls(value: object) -> object:
    """Names to texts; everything else is left out."""
    if not isinstance(value, dict):
        return {}
    return {str(k)[:200]: v for k, v in list(value.items())[:200] if isinstance(v, str) and v}


Text = Annotated[str, BeforeValidator(_text)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Urls = Annotated[dict[str, str], BeforeValidator(_urls)]
Required = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class Shape(BaseModel):
    """An object of the API: camelCase on the wire."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)


class KlavisTool(Shape):
    name: Text = ""
    description: Text = ""


class KlavisServer(Shape):
    """An entry of the provider's catalogue."""

    id: Text = ""
    name: Required
    description: Text = ""
    tools: Annotated[list[KlavisTool], BeforeValidator(_list)] = []
    auth_needed: Flag = False


class Catalogue(Shape):
    servers: list[Any]


class CreatedInstance(Shape):
    """What came of making an instance."""

    server_url: Required
    instance_id: Required
    oauth_url: Text = ""


class Instance(Shape):
    """An instance as the provider has it."""

    instance_id: Text = ""
    auth_needed: Flag = False
    is_authenticated: Flag = False
    server_name: Text = ""
    oauth_url: Text = ""

    @property
    def may_be_used(self) -> bool:
        """Nobody has to sign in any more."""
        return self.is_authenticated or not self.auth_needed


class KlavisResult(Shape):
    success: Flag = True
    message: Text = ""


class Strata(Shape):
    """Several services behind one server."""

    strata_server_url: Required
    strata_id: Text = ""
    connected_servers: Annotated[list[Any], BeforeValidator(_list)] = []
    added_servers: Annotated[list[Any], BeforeValidator(_list)] = []
    oauth_urls: Urls = {}
    api_key_urls: Urls = {}


class ListedTools(Shape):
    success: Flag = True
    tools: Annotated[list[Any], BeforeValidator(_list)] = []
    error: Text = ""


class CallResult(Shape):
    content: Annotated[list[Any], BeforeValidator(_list)] = []
    is_error: Flag = False
    structured_content: dict[str, Any] | None = None


class CalledTool(Shape):
    success: Flag = True
    result: CallResult | None = None
    error: Text = ""
