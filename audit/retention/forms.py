"""The forms of the log's settings."""

from __future__ import annotations

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from audit.bodies.masking import DETECTORS, read_masked_path
from audit.models import AuditPolicy
from audit.models.policies import DEFAULT_BODY_BYTES, MOST_BODY_BYTES
from audit.retention.policies import LONGEST_DAYS, MOST_KEPT_ENTRIES, PolicyChange
from workspaces.errors import InvalidInput
from workspaces.pages.address_fields import TakesAddresses
from workspaces.pages.numbers import WholeNumberField
from workspaces.pages.seen_values import NoticesOthers
from workspaces.words.formats import file_size, whole

_SIZES = (
    (0, _("nothing but a short preview")),
    (64 * 1024, "64 KB"),
    (DEFAULT_BODY_BYTES, "1 MB"),
    (8 * 1024 * 1024, "8 MB"),
    (MOST_BODY_BYTES, "64 MB"),
)


class PolicyForm(NoticesOthers, forms.Form):
    """How long the log is kept and what is masked in it."""

    keep_days = forms.IntegerField(
        label=_("Keep entries for (days)"),
        required=False,
        min_value=1,
        max_value=LONGEST_DAYS,
        help_text=_(
            "Leave empty to keep them for ever. Older entries are deleted for good, and a signed record remains."
        ),
    )
    keep_entries = WholeNumberField(
        label=_("Keep at most (entries)"),
        required=False,
        min_value=1000,
        max_value=MOST_KEPT_ENTRIES,
        help_text=_(
            "1,000 or more. Leave empty for no limit. The oldest entries are deleted first."
        ),
    )
    keep_bodies_days = forms.IntegerField(
        label=_("Keep arguments and results for (days)"),
        required=False,
        min_value=1,
        max_value=LONGEST_DAYS,
        help_text=_(
            "Leave empty to keep them as long as their entries. Entries stay, with sizes and fingerprints."
        ),
    )
    body_bytes = forms.TypedChoiceField(
        label=_("Maximum size of arguments and of a result"),
        coerce=int,
        help_text=_("Larger ones are cut. Their size and a fingerprint of the whole are kept."),
    )
    masked_paths = forms.CharField(
        label=_("Always mask these fields"),
        required=False,
        max_length=60_000,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "font-mono"}),
        help_text=_(
            "One JSONPath per line, such as $.arguments.customer.ssn. For one tool only: crm/lookup $.result..email"
        ),
    )
    detectors = forms.MultipleChoiceField(
        label=_("Mask these kinds of data"),
        required=False,
        choices=[(name, _(words)) for name, (words, _find) in DETECTORS.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Credentials are always masked."),
    )

    def __init__(self, data: QueryDict | None = None, *, policy: AuditPolicy) -> None:
        initial = {
            "keep_days": policy.keep_days,
            "keep_entries": policy.keep_entries,
            "keep_bodies_days": policy.keep_bodies_days,
            "body_bytes": policy.body_bytes,
            "masked_paths": "\n".join(policy.masked_paths),
            "detectors": policy.detectors,
        }
        super().__init__(data, initial=initial)
        size = self.fields["body_bytes"]
        assert isinstance(size, forms.TypedChoiceField)
        # A size that was set by another way stays a choice.
        own = (
            []
            if policy.body_bytes in dict(_SIZES)
            else [(policy.body_bytes, f"{policy.body_bytes} bytes")]
        )
        size.choices = [*_SIZES, *own]

    def clean_masked_paths(self) -> list[str]:
        """One path a line, each readable."""
        lines = [
            line.strip() for line in self.cleaned_data["masked_paths"].splitlines() if line.strip()
        ]
        for line in lines:
            try:
                read_masked_path(line)
            except InvalidInput as error:
                raise forms.ValidationError(error.message) from error
        return lines

    def change(self) -> PolicyChange:
        """What was entered; the form is valid."""
        return PolicyChange(**self.cleaned_data)


def policy_in_words(policy: AuditPolicy) -> list[tuple[str, list[str]]]:
    """The same for those who may only read it: what each setting is called, and what it is set to, a line each."""
    size = str(dict(_SIZES).get(policy.body_bytes) or file_size(policy.body_bytes))
    found = [gettext(DETECTORS[name][0]) for name in policy.detectors if name in DETECTORS]
    return [
        (gettext("Entries are kept"), [_days(policy.keep_days) or gettext("for ever")]),
        (
            gettext("Number of entries"),
            [gettext("no limit")]
            if policy.keep_entries is None
            else [gettext("at most %(count)s") % {"count": whole(policy.keep_entries)}],
        ),
        (
            gettext("Arguments and results are kept"),
            [_days(policy.keep_bodies_days) or gettext("as long as their entries")],
        ),
        (gettext("Maximum size of arguments and of a result"), [size]),
        (gettext("Always mask these fields"), policy.masked_paths or [gettext("none")]),
        (
            gettext("Mask these kinds of data"),
            [*map(str, found)] or [gettext("only credentials")],
        ),
    ]


def _days(count: int | None) -> str:
    if count is None:
        return ""
    return ngettext("%(count)d day", "%(count)d days", count) % {"count": count}


class HoldForm(forms.Form):
    """Why nothing may be removed."""

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="hold_%s")

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Such as the matter's name and number. Auditors read it."),
    )


class ErasureForm(TakesAddresses, forms.Form):
    """Whose arguments and results are erased, and why."""

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="erase_%s")

    email = forms.EmailField(label=_("E-mail address of the person"), max_length=254)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Such as the number of the request. Auditors read it."),
    )
    with_chats = forms.BooleanField(
        label=_("Also erase their chats, files and private buds, as they have left"),
        required=False,
        help_text=_(
            "Nobody else can read these. Members delete their chats themselves. Chats stay in the database until a job has run that erases some each hour."
        ),
    )
