"""Control characters in names from other sources are escaped. Letters of all languages stay as they are."""

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
def test_a_name_is_one_line_without_hidden_characters(written: str, shown: str) -> None:
    assert printable(written) == shown


def test_a_text_of_several_lines_keeps_its_line_ends() -> None:
    assert printable("one\n\ttwo\r\x1b[2J", lines=True) == "one\n\ttwo\\r\\x1b[2J"


@pytest.mark.slow
def test_control_characters_format_characters_and_line_ends_are_escaped() -> None:
    every = [chr(code) for code in range(0x110000)]
    through = [each for each in every if printable(each) == each]
    assert {unicodedata.category(each) for each in through} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} == set()
