"""ProviderError(DomainError)            502  the model could not answer
├── ProviderSwitchedOff              502  an admin has switched it off
│   └── ProviderModelWithheld        502  the platform's owner does not let this workspace use the model
├── ProviderKeyRefused               502  bad or missing API key
│   └── ProviderKeyUnreadable        502  the stored key no longer opens, so nothing was sent
├── ProviderKeyUntested              502  a new key could not be tried, and was not stored
├── ProviderModelUnknown             502  no such model
├── ProviderCreditSpent              502  the account behind the key has nothing left
├── ProviderRateLimited              502  too many requests; says when to come back
├── ProviderBusy                     502  the workspace's own limit is reached, and the wait was too long
├── SpendingLimitReached             429  what a month allows is used up, and nothing was sent
├── ContextTooLong                   502  the conversation is longer than the model reads
│   └── QuestionTooLong              502  what was asked is, all by itself
├── ContentFiltered                  502  the provider's content filter stepped in
├── ToolsRefused                     502  this model takes no tools
├── PicturesRefused                  502  this model sees no pictures
├── ProviderRefusedRequest           502  anything else the provider finds wrong with the request
├── ProviderUnreachable              502  no connection, or its own failure
├── ProviderStalled                  502  it stopped sending
│   └── ProviderSilent               502  it has not begun in the time that it gets where another one stands by
├── ProviderBadAnswer                502  what came is not an answer, or broke off
│   ├── ProviderNoAnswer             502  nothing of what came is of an answer: a web page, or nothing at all
│   └── ProviderListMissing          502  where a list of models should be is none
└── BrokenArguments                  502  tool calls that cannot be read, again and again
"""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from workspaces.errors import DomainError


class ProviderError(DomainError):
    code = "provider_error"
    status = 502
    default_message = _("The model could not answer.")
    can_retry = True


class ProviderSwitchedOff(ProviderError):
    code = "provider_switched_off"
    default_message = _(
        "The model provider of this bud is switched off. A workspace admin can change that."
    )


class ProviderModelWithheld(ProviderSwitchedOff):
    code = "provider_model_withheld"
    default_message = _(
        "This workspace may no longer use this model. Choose another model, or ask whoever runs Trellis."
    )


class ProviderKeyRefused(ProviderError):
    code = "provider_key_refused"
    default_message = _(
        "The model provider refused the API key. A workspace admin can correct it in the admin."
    )


class ProviderKeyUnreadable(ProviderKeyRefused):
    code = "provider_key_unreadable"
    default_message = _(
        "The model provider's stored API key cannot be read. A workspace admin can enter it again."
    )


class ProviderKeyUntested(ProviderError):
    code = "provider_key_untested"
    default_message = _("Trellis could not test this key, so nothing was changed.")


class ProviderModelUnknown(ProviderError):
    code = "provider_model_unknown"
    default_message = _("The model provider does not know this bud's model.")


class ProviderCreditSpent(ProviderError):
    code = "provider_credit_spent"
    default_message = _(
        "The account at the model provider has no credit left. A workspace admin can look after that."
    )


class ProviderRateLimited(ProviderError):
    code = "provider_rate_limited"
    default_message = _("The model provider is receiving too many requests. Try again in a moment.")


class ProviderBusy(ProviderError):
    code = "provider_busy"
    default_message = _("Too many people are asking this model provider. Try again in a moment.")


class SpendingLimitReached(ProviderError):
    code = "spending_limit_reached"
    status = 429
    default_message = _("A monthly spending limit is reached. Ask a workspace admin to raise it.")


class ContextTooLong(ProviderError):
    code = "context_too_long"
    default_message = _(
        "This conversation has become longer than the model can read. "
        "Try again: then less of what is older is sent."
    )


class QuestionTooLong(ContextTooLong):
    code = "question_too_long"
    default_message = _(
        "The question, with what is attached to it, is longer than this model can read. "
        "Shorten it, or ask a bud with another model."
    )
    can_retry = False


class ContentFiltered(ProviderError):
    code = "content_filtered"
    default_message = _(
        "The model provider's content filter stopped this answer. Word the question differently to go on."
    )


class ToolsRefused(ProviderError):
    code = "provider_refused_tools"
    default_message = _(
        "This model cannot call functions. A workspace admin can set the bud's tool protocol to fenced JSON, "
        "or choose another model."
    )


class PicturesRefused(ProviderError):
    code = "provider_refused_pictures"
    default_message = _("This model cannot see pictures. Choose a bud with another model.")


class ProviderRefusedRequest(ProviderError):
    code = "provider_refused_request"
    default_message = _("The model provider did not accept the request.")


class ProviderUnreachable(ProviderError):
    code = "provider_unreachable"
    default_message = _(
        "Trellis can't connect to the model provider. Try again in a moment. If it stays so, tell whoever runs Trellis."
    )


class ProviderStalled(ProviderError):
    code = "provider_stalled"
    default_message = _("The model stopped answering in the middle.")


class ProviderSilent(ProviderStalled):
    default_message = _("The model provider did not answer in time.")


class ProviderBadAnswer(ProviderError):
    code = "provider_bad_answer"
    default_message = _("The model provider sent something that is not an answer.")


class ProviderNoAnswer(ProviderBadAnswer):
    """Another provider may well answer: nobody knows who sent this."""


class ProviderListMissing(ProviderBadAnswer):
    default_message = _(
        "The address does not return a list of models. Check that it ends with /v1."
    )


class BrokenArguments(ProviderError):
    code = "broken_arguments"
    default_message = _(
        "The model asked for a tool in a form that cannot be read, twice. What it did before is kept."
    )
