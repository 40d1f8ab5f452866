"""What leaves the log: by age, by count, on a person's request; never while a legal hold stands."""

from audit.retention.erasing import (
    Erasure,
    LeftBehind,
    continue_erasures,
    erase_bodies,
    erase_rest,
    person_of,
    register_left_behind,
)
from audit.retention.holds import active_hold, place_hold, release_hold
from audit.retention.policies import PolicyChange, change_policy, policy_row
from audit.retention.removing import (
    RemovalCounts,
    apply_retention,
    what_more_would_go,
    what_would_go,
)

__all__ = [
    "Erasure",
    "LeftBehind",
    "PolicyChange",
    "RemovalCounts",
    "active_hold",
    "apply_retention",
    "change_policy",
    "continue_erasures",
    "erase_bodies",
    "erase_rest",
    "person_of",
    "place_hold",
    "policy_row",
    "register_left_behind",
    "release_hold",
    "what_more_would_go",
    "what_would_go",
]
