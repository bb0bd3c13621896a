"""What other people named is shown and obeyed by nobody, and what people write in their own languages stays as it is."""

from __future__ import annotations

import unicodedata

import pytest

from flexspot.capacity.values.shown_text import printable


@pytest.mark.parametrize(
    "written,shown",
    [
        ("train-1", "train-1"),
        ("größe 10 µs — 日本語 🚀 │", "größe 10 µs — 日本語 🚀 │"),
        ("narrow\u202fand wide\u3000blanks\u00a0", "narrow\u202fand wide\u3000blanks\u00a0"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("one\n::error::two\r", "one\\n::error::two\\r"),
        ("tab\tand \u2028line\u0085", "tab\\tand \\u2028line\\x85"),
        ("\udc80", "\\udc80"),
    ],
)
def test_a_name_is_one_line_in_which_everything_is_seen(written: str, shown: str) -> None:
    assert printable(written) == shown


def test_a_text_of_several_lines_keeps_them() -> None:
    assert printable("one\n\ttwo\r\x1b[2J", lines=True) == "one\n\ttwo\\r\\x1b[2J"


@pytest.mark.slow
def test_no_character_that_unicode_calls_a_control_a_format_or_an_end_of_line_gets_through() -> None:
    every = [chr(code) for code in range(0x110000)]
    through = [each for each in every if printable(each) == each]
    assert {unicodedata.category(each) for each in through} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} == set()
