"""What was sent and what came back: masked, shown in part, committed to, and kept apart from the entry."""

from audit.bodies.commitments import commit_to, is_body_whole, is_key_whole
from audit.bodies.masking import DETECTORS, MaskedValue, Masking, read_masked_path
from audit.bodies.storing import RecordedContent, StoredBody, keep, read_body

__all__ = [
    "DETECTORS",
    "MaskedValue",
    "Masking",
    "RecordedContent",
    "StoredBody",
    "commit_to",
    "is_body_whole",
    "is_key_whole",
    "keep",
    "read_body",
    "read_masked_path",
]
