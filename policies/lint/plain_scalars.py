"""What a scalar without quotes means, as the YAML reader of Kubernetes' own tools takes it: JSON's types and no dates."""

from __future__ import annotations

import re
from typing import Final

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}

# A number of more digits is a text: no field of Kubernetes takes one, and converting it would take long.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})")
_OTHER_BASE = re.compile(r"(?P<sign>[-+]?)(?:0b(?P<binary>[01_]{1,64})|0x(?P<hexadecimal>[0-9a-fA-F_]{1,16})|0o?(?P<octal>[0-7_]{1,22}))")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]{0,30}\.[0-9_]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_BASES: Final = {"binary": 2, "hexadecimal": 16, "octal": 8}

_REMEMBERED: dict[str, Scalar] = dict(_WORDS)
_REMEMBERED_AT_MOST = 50_000


def plain_scalar(written: str) -> Scalar:
    """The value of a scalar that stands without quotes and without a tag.

    Like goyaml.v2, which sigs.k8s.io/yaml wraps, but without its rarest forms: dates stay texts because JSON has none, and so do
    quantities such as 1e3, which mean the same either way.
    """
    if written in _REMEMBERED:
        return _REMEMBERED[written]
    value = _converted(written) if written[0] in "0123456789+-." else written
    if len(_REMEMBERED) < _REMEMBERED_AT_MOST and len(written) < 64:  # noqa: PLR2004 -- long texts seldom come twice
        _REMEMBERED[written] = value
    return value


def _converted(written: str) -> Scalar:
    if _INTEGER.fullmatch(written):
        return int(written.replace("_", ""))
    if _FLOAT.fullmatch(written):
        return float(written.replace("_", ""))
    if match := _OTHER_BASE.fullmatch(written):
        [(base, digits)] = [(_BASES[name], match[name]) for name in _BASES if match[name]]
        digits = digits.replace("_", "")
        return int(match["sign"] + digits, base) if digits else written
    return written
