"""Counters over the log, kept from sealed entries by cursor; read together with the tail that is not counted yet."""

from audit.rollups.counting import (
    catch_up,
    count_sealed,
    forget,
    roll_up,
    roll_up_all,
    rolled_up_to,
    uncounted_chains,
)
from audit.rollups.histogram import ERROR, percentile

__all__ = [
    "ERROR",
    "catch_up",
    "count_sealed",
    "forget",
    "percentile",
    "roll_up",
    "roll_up_all",
    "rolled_up_to",
    "uncounted_chains",
]
