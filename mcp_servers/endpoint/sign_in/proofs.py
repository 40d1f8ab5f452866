"""What a person was signed in with when they let a client in. It changes with all that ends browser sessions."""

from __future__ import annotations

import hashlib
from hmac import compare_digest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workspaces.models import User


def proof_of(user: User) -> str:
    """What a sign-in keeps."""
    return _hashed(user.get_session_auth_hash())


def is_proof_of(kept: str, user: User) -> bool:
    """Whether the person is still signed in with the same; also under a secret key of before."""
    if compare_digest(kept, proof_of(user)):
        return True
    return any(compare_digest(kept, _hashed(one)) for one in user.get_session_auth_fallback_hash())


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
