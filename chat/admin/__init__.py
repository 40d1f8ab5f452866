"""Buds, model providers, their models, ratings and shared chats in the admin."""

from chat.admin import buds, provider_models, providers, ratings, shared_chats

__all__ = ["buds", "provider_models", "providers", "ratings", "shared_chats"]
