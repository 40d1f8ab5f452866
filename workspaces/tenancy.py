"""People and workspaces: what all other rows belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.apps import apps
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models.functions import Lower
from django.utils.crypto import salted_hmac
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.actors import Role
from workspaces.database.prepared import PreparedRows
from workspaces.words.names import seen_name

if TYPE_CHECKING:
    from allauth.account.models import EmailAddress


class UserManager(BaseUserManager["User"]):
    """People are known by their e-mail address, whatever its case."""

    def get(self, *args: Any, **kwargs: Any) -> User:
        """As its base. Django asks for the person of a session in this way, with each request."""
        if args or kwargs.keys() != {"pk"} or not isinstance(kwargs["pk"], UUID):
            return super().get(*args, **kwargs)
        if (user := _PERSON.first(kwargs["pk"])) is None:
            raise User.DoesNotExist
        return user

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)

    @transaction.atomic
    def create_user(
        self, email: str, password: str | None = None, *, is_confirmed: bool = False, **fields: Any
    ) -> User:
        """Make an account; `is_confirmed` says that a mail to its address was answered."""
        if not email:
            raise ValueError("an e-mail address is needed")
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        user.keep_address(is_confirmed=is_confirmed)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        fields["is_superuser"] = True
        return self.create_user(email, password, **fields)


class Theme(models.TextChoices):
    """In which colours a person sees Trellis."""

    SYSTEM = "system", _("As the device")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class DateFormat(models.TextChoices):
    """How days are written, by an example."""

    WORDS = "D MMM YYYY", _("26 Nov 2026")
    DAY_FIRST = "DD/MM/YYYY", "26/11/2026"
    MONTH_FIRST = "MM/DD/YYYY", "11/26/2026"
    ISO = "YYYY-MM-DD", "2026-11-26"


class Clock(models.TextChoices):
    """How times of day are written."""

    HOURS_24 = "24", _("24 hours, 14:05")
    HOURS_12 = "12", _("12 hours, 2:05 PM")


class NumberFormat(models.TextChoices):
    """How numbers are grouped, and how their decimals begin, by an example that is the value too."""

    COMMA_POINT = "1,234.5", "1,234.5"
    POINT_COMMA = "1.234,5", "1.234,5"
    SPACE_COMMA = "1 234,5", "1 234,5"


class User(AbstractBaseUser, PermissionsMixin):
    """A person, who signs in with an e-mail address."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(_("e-mail address"), unique=True)
    name = models.CharField(max_length=150, blank=True)
    is_active = models.BooleanField(
        default=True,
        help_text=_("Switch off instead of deleting: the person can no longer sign in."),
    )
    is_address_confirmed = models.BooleanField(
        _("address confirmed"),
        default=False,
        db_default=False,
        editable=False,
        help_text=_("A mail to the address was answered. Follows the rows of `EmailAddress`."),
    )
    has_two_steps = models.BooleanField(
        _("two-step verification"),
        default=False,
        db_default=False,
        editable=False,
        help_text=_(
            "Asked for a second step after the password. Follows the rows of `Authenticator`."
        ),
    )
    theme = models.CharField(
        max_length=6,
        choices=Theme.choices,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("Empty: never chosen, so each browser keeps what was chosen in it."),
    )
    # How moments and numbers are written for the person (`workspaces.words.formats`). Empty: as their browser says.
    time_zone = models.CharField(
        _("time zone"), max_length=64, blank=True, default="", db_default="", editable=False
    )
    date_format = models.CharField(
        max_length=10,
        choices=DateFormat.choices,
        blank=True,
        default="",
        db_default="",
        editable=False,
    )
    clock = models.CharField(
        max_length=2, choices=Clock.choices, blank=True, default="", db_default="", editable=False
    )
    number_format = models.CharField(
        max_length=7,
        choices=NumberFormat.choices,
        blank=True,
        default="",
        db_default="",
        editable=False,
    )
    picture_digest = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("Of the picture that they gave, for its address. Empty: none."),
    )
    shortcuts = models.JSONField(
        null=True,
        editable=False,
        help_text=_("Keys of their own (`workspaces.people.shortcuts`); None: the usual ones."),
    )
    others_signed_out_at = models.DateTimeField(
        _("signed out everywhere else"),
        null=True,
        editable=False,
        help_text=_("Only sessions that know of this moment count."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_unique_any_case")]

    def __str__(self) -> str:
        return self.email

    def clean(self) -> None:
        super().clean()
        self.email = self.email.lower()

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What a session was signed in with; it counts no more once the person signed out everywhere else."""
        kept = str(super()._get_session_auth_hash(secret))  # type: ignore[misc]  # Django's, which the types leave out
        if self.others_signed_out_at is None:
            return kept
        moment = self.others_signed_out_at.astimezone(UTC).isoformat()
        salt = "workspaces.User.others_signed_out_at"
        return salted_hmac(salt, f"{kept} {moment}", secret=secret, algorithm="sha256").hexdigest()

    @property
    def is_staff(self) -> bool:
        """Whether the admin opens: for the platform's owner and for workspace admins."""
        if not self.is_active:
            return False
        return self.is_superuser or self.administers_a_workspace

    @cached_property
    def administers_a_workspace(self) -> bool:
        """Whether they are an admin or owner anywhere; pages ask several times, and read the person once a request."""
        return bool(_ADMINISTERED.all_values(self.pk))

    @property
    def display_name(self) -> str:
        return self.name or self.email.partition("@")[0]

    def get_full_name(self) -> str:
        return self.display_name

    def get_short_name(self) -> str:
        return self.display_name

    @transaction.atomic
    def keep_address(self, *, is_confirmed: bool = False) -> EmailAddress:
        """Give the address that the account signs in with its row, and drop the account's other ones.

        A row that is there keeps what it is: confirmed or not.
        """
        addresses = apps.get_model("account", "EmailAddress").objects  # allauth loads after us
        mine, email = addresses.filter(user=self), self.email.lower()
        mine.exclude(email=email).delete()
        row: EmailAddress
        row, _ = mine.get_or_create(
            user=self, email=email, defaults={"primary": True, "verified": is_confirmed}
        )
        if not row.primary:
            row.primary = True
            row.save(update_fields=["primary"])
        self.is_address_confirmed = row.verified
        return row

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        # Django's own table of permissions is not used: roles.require() decides.
        return self.is_active and self.is_superuser

    def has_perms(self, perm_list: Sequence[str], obj: Any = None) -> bool:  # type: ignore[override]
        return all(self.has_perm(perm, obj) for perm in perm_list)

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_staff


def _administered(user_id: UUID) -> Any:
    rows = User(pk=user_id).memberships.filter(
        role__in=[Role.ADMIN, Role.OWNER], workspace__is_active=True, suspended_at=None
    )
    return rows.values_list("id")[:1]


_PERSON = PreparedRows[User](lambda user_id: User.objects.filter(pk=user_id), UUID)
_ADMINISTERED = PreparedRows[models.Model](_administered, UUID)


class PersonPicture(models.Model):
    """The picture that a person gave of themselves, drawn anew."""

    user = models.OneToOneField(
        User, on_delete=models.CASCADE, primary_key=True, related_name="+", editable=False
    )
    content = models.BinaryField(editable=False)
    """A small JPEG."""

    def __str__(self) -> str:
        return f"{self.pk}"


class WorkspaceQuery(models.QuerySet["Workspace"]):
    def joined_by(self, user: User) -> WorkspaceQuery:
        """The active workspaces that this person is a member of and not suspended in, by name."""
        mine = user.memberships.filter(suspended_at=None).values("workspace_id")
        return self.filter(is_active=True, pk__in=mine).order_by("name", "pk")


class Workspace(models.Model):
    """A tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60, unique=True, help_text=_("Its name in addresses."))
    is_active = models.BooleanField(default=True, help_text=_("Off suspends the whole workspace."))
    approves_new_tools = models.BooleanField(
        default=False,
        help_text=_("Tools that appear on a server later may be used at once, without a review."),
    )
    allows_personal_servers = models.BooleanField(
        default=False, help_text=_("Members may add MCP servers of their own.")
    )
    remembers_permissions = models.BooleanField(
        default=True,
        help_text=_("Members may let a tool run without being asked again."),
    )
    reads_outside_unasked = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_(
            "After content from outside was read, tools that only read may reach outside without asking."
        ),
    )
    allows_mcp_clients = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Members may use its tools in other MCP clients."),
    )
    allows_public_links = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Members may share chats with anyone who has the link."),
    )
    requires_two_steps = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Only people with two-step verification may enter."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = WorkspaceQuery.as_manager()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Give it a name that people can see.

        Raises:
            ValidationError: there is nothing to see of it. Of none at all, or one that is too long, its field tells.
        """
        super().clean()
        typed, self.name = self.name, seen_name(self.name)
        if typed and not self.name:
            raise ValidationError({"name": _("Give the workspace a name that people can see.")})
