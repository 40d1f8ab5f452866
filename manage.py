#!/usr/bin/env python3
"""Every command of Trellis. Runs on bare Python 3.11+: the environment it needs is made at the first start."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
