"""Buds, model providers, their models and ratings in the admin."""

from chat.admin import buds, provider_models, providers, ratings

__all__ = ["buds", "provider_models", "providers", "ratings"]
