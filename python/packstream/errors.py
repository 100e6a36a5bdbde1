"""errors.py - the exception of readers, and text that is safe to print.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import os
import re
from typing import Any


class PackError(ValueError):
    """Raised for a truncated, damaged or unsupported stream."""


def need(right: Any, at: int, why: str, what: str = "") -> None:
    if not right:
        raise PackError("%sbyte %d: %s" % (what, at, why))


def printable(text: Any, most: int = 1023) -> str:
    """Makes a path, a name from a file or a message safe to print: any
    character except printable ASCII becomes "?", and a long text keeps its
    last `most` characters."""
    text = os.fsdecode(text) if isinstance(text, bytes) else str(text)
    if len(text) > most:
        text = "..." + text[3 - most:]
    return re.sub("[^ -~]", "?", text)
