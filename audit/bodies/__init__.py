"""What was sent and what came back: masked, shown in part, committed to, and kept apart from the entry."""

from audit.bodies.commitments import commit_to, is_body_whole, is_key_whole
from audit.bodies.masking import DETECTORS, Mark, Masking, read_masked_path
from audit.bodies.storing import Kept, StoredBody, keep, read_body

__all__ = [
    "DETECTORS",
    "Kept",
    "Mark",
    "Masking",
    "StoredBody",
    "commit_to",
    "is_body_whole",
    "is_key_whole",
    "keep",
    "read_body",
    "read_masked_path",
]
