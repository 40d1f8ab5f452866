"""The search for the highest level that passes."""

from __future__ import annotations

import pytest

from bench.capacity import search


@pytest.mark.parametrize("limit", [0, 5, 16, 40, 41, 100, 300])
async def test_it_finds_the_limit_to_a_tenth(limit: int) -> None:
    """Never above it, and at the end of the range no further."""

    async def passes(level: int) -> bool:
        return level <= limit

    found = await search(passes, first=16, most=200, has_time=lambda: True)
    end = min(limit, 200)
    assert end - max(1, end // 10) <= found <= end


async def test_a_level_that_fails_once_has_a_second_try() -> None:
    """A pause of the machine is no limit of the product."""
    tried: list[int] = []

    async def passes(level: int) -> bool:
        tried.append(level)
        return tried.count(level) == 2 and level <= 32

    assert await search(passes, first=16, most=64, has_time=lambda: True) >= 30
    assert tried[:4] == [16, 16, 32, 32]


async def test_without_time_it_says_what_is_known() -> None:
    """A level that was not tried does not count as passed."""
    left = iter([True, True, True, False])

    async def passes(level: int) -> bool:
        return True

    found = await search(passes, first=16, most=500, has_time=lambda: next(left, False))
    assert found == 16
