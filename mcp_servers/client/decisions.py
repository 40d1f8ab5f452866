"""What the decision on a call rests on, and what was decided. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_servers.client.values import Effect, ToolAnnotations


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """All that the decision rests on."""

    is_server_active: bool = True
    is_enabled: bool = True
    is_removed: bool = False
    is_quarantined: bool = False
    problem: str = ""
    trusts_annotations: bool = False
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    override: Effect | None = None
    """What an administrator set for this tool; None: nothing."""
    is_indirect: bool = False
    """It runs whatever action its arguments name, so what is said of the tool itself says nothing of a call."""
    action: str = ""
    """That action, for people; empty: it cannot be told."""
    action_effect: Effect | None = None
    """What an administrator set for that action; None: nothing."""
    has_read_untrusted: bool = False
    """What the model reads holds something from outside."""
    untrusted_source: str = ""
    """What that was, as a clause: "the page … was read"."""
    unknown_destinations: tuple[str, ...] = ()
    """Where the call can carry its arguments, other than where a person or the assistant's author wants them."""

    @property
    def only_reads(self) -> bool:
        """A trusted server says that the tool changes nothing."""
        return (
            not self.is_indirect
            and self.trusts_annotations
            and self.annotations.read_only is True
            and self.annotations.destructive is not True
        )

    @property
    def reaches_outside(self) -> bool:
        """The tool may carry what it is given to the outside: nobody whose word counts says otherwise."""
        return self.is_indirect or not (
            self.trusts_annotations and self.annotations.open_world is False
        )

    @property
    def is_steerable(self) -> bool:
        """Words from outside could have the model send something out with this call, unseen."""
        if not self.has_read_untrusted or not self.reaches_outside:
            return False
        return not self.only_reads or bool(self.unknown_destinations)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """What is to happen, which rule says so, and why in plain words."""

    effect: Effect
    rule: str
    reason: str
