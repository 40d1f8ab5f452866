"""Where well-known providers serve the Chat Completions API, for whoever adds one. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple


class KnownAddress(NamedTuple):
    """A provider and its base URL."""

    name: str
    base_url: str


HOSTED: Final = (
    KnownAddress("OpenAI", "https://api.openai.com/v1"),
    KnownAddress("Anthropic", "https://api.anthropic.com/v1"),
    KnownAddress("Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
    KnownAddress("Cerebras", "https://api.cerebras.ai/v1"),
    KnownAddress("DeepSeek", "https://api.deepseek.com/v1"),
    KnownAddress("Fireworks", "https://api.fireworks.ai/inference/v1"),
    KnownAddress("Groq", "https://api.groq.com/openai/v1"),
    KnownAddress("Hugging Face", "https://router.huggingface.co/v1"),
    KnownAddress("Mistral", "https://api.mistral.ai/v1"),
    KnownAddress("Moonshot (Kimi)", "https://api.moonshot.ai/v1"),
    KnownAddress("OpenRouter", "https://openrouter.ai/api/v1"),
    KnownAddress("Together", "https://api.together.xyz/v1"),
    KnownAddress("xAI (Grok)", "https://api.x.ai/v1"),
)
LOCAL: Final = (
    KnownAddress("Ollama", "http://localhost:11434/v1"),
    KnownAddress("LM Studio", "http://localhost:1234/v1"),
    KnownAddress("vLLM", "http://localhost:8000/v1"),
)
"""On the machine that Trellis runs on, with the ports that they take by themselves."""
