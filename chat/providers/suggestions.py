"""The well-known providers and models that forms suggest to whoever adds a provider. Pure."""

from __future__ import annotations

from datetime import date
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from chat.providers.list_prices import listed_models
from chat.providers.model_ends import end_of


class Suggestion(NamedTuple):
    """What a field may hold."""

    value: str
    provider: str
    """Whose it is, by the name that people know it by."""


HOSTED: Final = (
    Suggestion("https://api.openai.com/v1", "OpenAI"),
    Suggestion("https://api.anthropic.com/v1", "Anthropic"),
    Suggestion("https://generativelanguage.googleapis.com/v1beta/openai", "Google Gemini"),
    Suggestion("https://api.cerebras.ai/v1", "Cerebras"),
    Suggestion("https://api.deepseek.com/v1", "DeepSeek"),
    Suggestion("https://api.fireworks.ai/inference/v1", "Fireworks"),
    Suggestion("https://api.groq.com/openai/v1", "Groq"),
    Suggestion("https://router.huggingface.co/v1", "Hugging Face"),
    Suggestion("https://api.mistral.ai/v1", "Mistral"),
    Suggestion("https://api.moonshot.ai/v1", "Moonshot (Kimi)"),
    Suggestion("https://openrouter.ai/api/v1", "OpenRouter"),
    Suggestion("https://api.together.xyz/v1", "Together"),
    Suggestion("https://api.x.ai/v1", "xAI (Grok)"),
)
"""Their base URLs, where they serve the Chat Completions API."""
LOCAL: Final = (
    Suggestion("http://localhost:11434/v1", "Ollama"),
    Suggestion("http://localhost:1234/v1", "LM Studio"),
    Suggestion("http://localhost:8000/v1", "vLLM"),
)
"""On the machine that Trellis runs on, with the ports that they take by themselves."""


def suggested_models(on: date) -> list[Suggestion]:
    """Models that answer on that day and have a known price, each provider's newest first."""
    return [
        Suggestion(name, one.provider)
        for one in HOSTED
        for name in listed_models(urlsplit(one.value).hostname or "")
        if (end := end_of(one.value, name)) is None or end > on
    ]
