"""In which encoding a text is: told by its first bytes, found by what its bytes can be, or guessed by a library.

Source: Unicode 16.0, section 23.8 (byte order marks); WHATWG Encoding Standard, section 4.2 for the names.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from charset_normalizer import CharsetMatch, from_bytes

WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How texts begin whose letters have two bytes."""
_WESTERN: Final = "cp1252"
_OTHERS: Final = {
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "koi8_r": "koi8-r",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "euc_jp": "euc-jp",
    "gb18030": "gb18030",
    "big5": "big5",
}
_NAMES: Final = {"utf-8-sig": "utf-8", _WESTERN: "windows-1252", **_OTHERS}
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_SAMPLE: Final = 64 * 1024


def decoded(content: bytes) -> tuple[str, str] | None:
    """The text, and the name of its encoding as browsers know it; None if it is in none that is told or likely."""
    if content.startswith(WIDE_MARKS):
        return _decode(content, "utf-16")
    return _decode(content, "utf-8-sig") or _guessed(content)


def _decode(content: bytes, codec: str) -> tuple[str, str] | None:
    try:
        return content.decode(codec), _NAMES.get(codec, codec)
    except UnicodeDecodeError:
        return None


def _guessed(content: bytes) -> tuple[str, str] | None:
    """As what is Western before anything else, unless that gives a mess: of a few letters nobody can tell."""
    begin = _BEYOND_ASCII.search(content)
    if begin is None:  # then it is UTF-8
        return None
    sample = content[begin.start() : begin.start() + _SAMPLE]
    if len(sample) == _SAMPLE:  # no letter of several bytes is cut
        sample = sample.rpartition(b"\n")[0] or sample
    western = from_bytes(sample, cp_isolation=[_WESTERN]).best()
    other = from_bytes(sample, cp_isolation=list(_OTHERS)).best()
    likely = western if western and (not other or _mess(western) <= _mess(other)) else other
    return _decode(content, likely.encoding) if likely else None


def _mess(match: CharsetMatch) -> tuple[float, float]:
    return round(match.chaos, 2), -match.coherence
