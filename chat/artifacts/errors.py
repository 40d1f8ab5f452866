"""What can go wrong with files, in words for people."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from workspaces.errors import DomainError


class FileTooLarge(DomainError):
    """More bytes than a file, or all files of a conversation, may have."""

    code = "too_large"
    status = 413
    default_message = _("This file is too large.")


class StorageUnavailable(DomainError):
    """The storage did not take the content, or does not give it: full, or out of reach."""

    code = "storage_unavailable"
    status = 507
    default_message = _("The file could not be stored because the storage is full or out of reach.")


class ContentMissing(DomainError):
    """A version's row is there, and its content is not."""

    code = "content_missing"
    status = 503
    default_message = _("The content of this file cannot be read at the moment.")
