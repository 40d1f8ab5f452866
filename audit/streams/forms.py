"""The form of a stream's settings: what of it applies to its kind, and nothing else."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from audit.models import AuditStream
from audit.streams.services import StreamDraft, StreamStart, find_faults
from workspaces.pages.seen_values import NoticesOthers

_SYSLOG_ONLY: Final = ("ca_certificates", "client_certificate", "client_key")
_TARGETS: Final = {
    AuditStream.Kind.WEBHOOK: (
        "URL",
        gettext_noop("Batches of JSON entries are posted here, each signed."),
    ),
    AuditStream.Kind.SYSLOG: (
        gettext_noop("Host and port"),
        gettext_noop("Such as logs.example.org:6514; always with TLS."),
    ),
    AuditStream.Kind.OTLP: (
        "URL",
        gettext_noop("Of the collector's logs, such as https://otel.example.org/v1/logs."),
    ),
}


class StreamForm(NoticesOthers, forms.Form):
    """Settings of one stream; secrets go in and never come out."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("Shown to people here."))
    target = forms.CharField(label=_("Target"), max_length=2048)
    headers = forms.CharField(
        label=_("Headers"),
        required=False,
        max_length=16_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("One “Name: value” per line, for example an access key."),
    )
    removes_headers = forms.BooleanField(label=_("Remove the stored headers"), required=False)
    ca_certificates = forms.CharField(
        label=_("CA certificates"),
        required=False,
        max_length=64_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=_(
            "PEM. If you enter some, only these are trusted. Leave empty to use the system's."
        ),
    )
    client_certificate = forms.CharField(
        label=_("Client certificate"),
        required=False,
        max_length=64_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=_("PEM. Needed if the receiver wants a client certificate."),
    )
    client_key = forms.CharField(
        label=_("Client key"),
        required=False,
        max_length=16_000,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("Its private key, PEM."),
    )
    start = forms.ChoiceField(
        label=_("Send"),
        choices=[
            (StreamStart.NOW.value, _("from now on")),
            (StreamStart.BEGINNING.value, _("everything so far as well")),
        ],
    )

    def __init__(self, *args: Any, kind: str, stream: AuditStream | None = None, **kwargs: Any):
        if stream is not None:
            kwargs["initial"] = {
                "name": stream.name,
                "target": stream.target,
                "ca_certificates": stream.ca_certificates,
                "client_certificate": stream.client_certificate,
            }
        self._kind, self._stream = kind, stream
        kwargs["auto_id"] = f"id_{kind}_%s"
        super().__init__(*args, **kwargs)
        label, text = _TARGETS[AuditStream.Kind(kind)]
        self.fields["target"].label = _(label)
        self.fields["target"].help_text = _(text)
        is_syslog = kind == AuditStream.Kind.SYSLOG
        unused = ["headers", "removes_headers"] if is_syslog else [*_SYSLOG_ONLY]
        if stream is None:
            unused.append("removes_headers")
        else:
            unused.append("start")
            kept = _("Stored, and not shown. Leave empty to keep.")
            if stream.headers:
                self.fields["headers"].help_text = kept
            else:
                unused.append("removes_headers")
            if stream.client_key:
                self.fields["client_key"].help_text = kept
        for name in unused:
            self.fields.pop(name, None)

    def clean_headers(self) -> dict[str, str] | None:
        """Lines as names and values; None if nothing was entered."""
        found: dict[str, str] = {}
        for line in str(self.cleaned_data["headers"]).splitlines():
            if not line.strip():
                continue
            name, colon, value = line.partition(":")
            if not colon or name.strip() in found:
                raise forms.ValidationError(_("Write one “Name: value” a line, each name once."))
            found[name.strip()] = value.strip()
        return found or None

    def clean(self) -> None:
        """Tell what cannot be used beside what is not written as it should be."""
        super().clean()
        faults = find_faults(
            self._kind, self._entered(), stream=self._stream, known=tuple(self.errors)
        )
        for name, texts in faults.items():
            for text in texts:
                self.add_error(name, text)

    def draft(self) -> StreamDraft:
        """What was entered, once it is valid."""
        return StreamDraft(name=self.cleaned_data["name"], **self._entered())

    def _entered(self) -> dict[str, Any]:
        """What is sent where, as far as it is written as it should be."""
        values = self.cleaned_data
        entered = {
            "headers": {} if values.get("removes_headers") else values.get("headers"),
            "ca_certificates": values.get("ca_certificates", ""),
            "client_certificate": values.get("client_certificate", ""),
            "client_key": values.get("client_key") or None,
        }
        return entered | ({"target": values["target"]} if "target" in values else {})

    @property
    def start_chosen(self) -> StreamStart:
        """From where to send."""
        return StreamStart(self.cleaned_data["start"])
