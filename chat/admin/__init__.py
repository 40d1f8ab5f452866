"""Buds, model providers, their models, ratings, shared chats and allowed tools in the admin."""

from chat.admin import buds, permissions, provider_models, providers, ratings, shared_chats

__all__ = ["buds", "permissions", "provider_models", "providers", "ratings", "shared_chats"]
