"""What a call rule asks of a call's arguments: the typed value behind a JSON column. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from mcp_servers.models.connection_config import describe_errors
from workspaces.errors import InvalidInput
from workspaces.words.texts import gettext_noop as _

MOST_CONDITIONS: Final = 20
LONGEST_TEXT: Final = 500


class Operator(StrEnum):
    """How a value of the arguments is compared."""

    EQUALS = "equals"
    NOT_EQUALS = "not_equals"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    MATCHES = "matches"
    NOT_MATCHES = "not_matches"
    GREATER = "greater"
    LESS = "less"
    PRESENT = "present"
    ABSENT = "absent"


NEGATIVE: Final = frozenset({Operator.NOT_EQUALS, Operator.NOT_CONTAINS, Operator.NOT_MATCHES})
WITHOUT_VALUE: Final = frozenset({Operator.PRESENT, Operator.ABSENT})
NUMERIC: Final = frozenset({Operator.GREATER, Operator.LESS})

OPERATOR_WORDS: Final[dict[Operator, str]] = {
    Operator.EQUALS: _("is"),
    Operator.NOT_EQUALS: _("is not"),
    Operator.CONTAINS: _("contains"),
    Operator.NOT_CONTAINS: _("does not contain"),
    Operator.STARTS_WITH: _("starts with"),
    Operator.ENDS_WITH: _("ends with"),
    Operator.MATCHES: _("matches"),
    Operator.NOT_MATCHES: _("does not match"),
    Operator.GREATER: _("is greater than"),
    Operator.LESS: _("is less than"),
    Operator.PRESENT: _("is present"),
    Operator.ABSENT: _("is absent"),
}


class Condition(BaseModel):
    """One condition on the arguments; all of a rule's have to hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=200)]
    """Where the value stands: `to`, `issue.labels`, `items.*.price`, or a JSON pointer such as `/to/0`."""
    operator: Operator
    value: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""

    @model_validator(mode="after")
    def _fits(self) -> Condition:
        if self.operator in WITHOUT_VALUE and self.value:
            raise ValueError("this comparison takes no value")
        if self.operator not in WITHOUT_VALUE and not self.value:
            raise ValueError("this comparison needs a value")
        if self.operator in NUMERIC:
            try:
                number = Decimal(self.value)
            except ArithmeticError:
                raise ValueError("this comparison needs a number") from None
            if not number.is_finite():
                raise ValueError("this comparison needs a number")
        return self


CONDITIONS: Final[TypeAdapter[list[Condition]]] = TypeAdapter(
    Annotated[list[Condition], Field(max_length=MOST_CONDITIONS)]
)


def read_conditions(value: object) -> tuple[Condition, ...]:
    """Check stored or submitted conditions.

    Raises:
        InvalidInput: names what is wrong.
    """
    try:
        return tuple(CONDITIONS.validate_python(value))
    except pydantic.ValidationError as error:
        raise InvalidInput(fields={"conditions": describe_errors(error)}) from error


def conditions_as_json(conditions: Sequence[Condition]) -> list[dict[str, str]]:
    """What is stored."""
    return [
        {"path": one.path, "operator": one.operator.value, "value": one.value} for one in conditions
    ]
