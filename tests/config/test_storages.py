"""Storages that whoever runs the platform names."""

from __future__ import annotations

from config.storages import client_values, named_storage


def test_a_bucket_that_does_not_answer_is_given_up_soon() -> None:
    """REL-2783: the options of its client count all the same, and those that are chosen over the limits."""
    values = client_values({"bucket_name": "b", "addressing_style": "path", "client_config": {}})
    tries = values["retries"]["total_max_attempts"]
    assert tries * values["connect_timeout"] <= 15
    assert tries * values["read_timeout"] <= 60
    assert values["s3"] == {"addressing_style": "path"}
    assert client_values({"client_config": {"read_timeout": 60}})["read_timeout"] == 60


def test_another_storage_gets_its_options_as_they_are() -> None:
    """REL-2783: only a bucket's client is known."""
    named = named_storage("storages.backends.azure_storage.AzureStorage", {"timeout": 9})
    assert named["OPTIONS"] == {"timeout": 9}
