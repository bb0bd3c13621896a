"""Whether a text that is no YAML is the source of some: what Helm, Terraform, envsubst or a person has still to fill in."""

from __future__ import annotations

import re
from typing import Final

_TEMPLATE_MARKS: Final = (b"{{", b"{%", b"%{", b"<%")
"""Helm, Go and Jinja; Jinja's and Terraform's directives; ERB and EJS."""

_UNFILLED: Final = re.compile(
    rb"^[ \t]*(?:- )*(?:[\w./-]+:[ \t]+)?(?:__[A-Z][A-Z0-9_]*__|@[A-Za-z_]\w*@|%(?:[sdvq](?![a-z])|\([a-z_]+\)s)|\{[A-Za-z_][\w.-]*\}(?=\S)"
    rb"|\$\{[^}\n]*\}|<[A-Z][A-Z0-9_ -]*>)"
)
"""A line that is a placeholder alone, or whose value begins with one that no scalar of YAML may begin with."""


def is_template(text: bytes, line: int) -> bool:
    """Whether a text that no parser takes is the source of one: by its marks, or by a placeholder where the parser gave up.

    A parser gives up at the placeholder, or up to two lines after it: it may have taken it for the begin of a key.
    """
    return any(mark in text for mark in _TEMPLATE_MARKS) or any(
        _UNFILLED.match(each) is not None for each in text.split(b"\n", line)[max(0, line - 3) : line]
    )
