"""PromQL as a tree, and expressions that never reach the parser."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.policies.metrics import Call, Matcher, Selector, parsed, promql_problem, walk
from flexspot.policies.values.field import UNKNOWN

WORDS = ["x", "sum", "(", ")", "[5m]", "{", "}", "=", '"a"', "by", "on", "group_left", "*", "-", "@", "offset", "1e999", ",", ":", "=~"]


def test_brackets_signs_and_ranges_are_left_out() -> None:
    assert parsed("-((rate(x[5m:1m])))") == Call((Selector((), "x"),), "rate")


def test_a_name_may_be_written_as_a_label() -> None:
    tree = parsed('{__name__="up", job=~"a|b"}')

    assert isinstance(tree, Selector)
    assert (tree.name, tree.matchers[1]) == ("up", Matcher("job", "=~", "a|b"))
    assert parsed('{__name__=~"up.*"}') == Selector((), "", (Matcher("__name__", "=~", "up.*"),))


@pytest.mark.parametrize(
    "matcher,needs",
    [
        (Matcher("node", "=", "a"), True),
        (Matcher("node", "=", ""), False),
        (Matcher("node", "!=", ""), True),
        (Matcher("node", "!=", "a"), False),
        (Matcher("node", "=~", ".+"), True),
        (Matcher("node", "=~", "a|.*"), False),
        (Matcher("node", "!~", ".*"), True),
        (Matcher("node", "!~", "a.+"), False),
        (Matcher("node", "=~", r"\pL+"), False),
    ],
    ids=str,
)
def test_a_matcher_needs_a_label_if_it_selects_no_series_without_it(matcher: Matcher, needs: object) -> None:
    assert matcher.needs_label is needs


@pytest.mark.parametrize("text", ["", "sum(", "x{", "foo bar", "x[$interval]", "x offset inf", "x" * 20_001])
def test_invalid_promql_has_no_tree(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize(
    "text,problem",
    [
        ("sum(up)", ""),
        ("sum(up", "unclosed left parenthesis"),
        ("x" * 20_001, UNKNOWN),
        ("holt_winters(up[1h], 0.3, 0.3)", UNKNOWN),
        ("rate(up[5m] smoothed)", UNKNOWN),
    ],
    ids=["none", "a bracket", "too long", "a function of another release", "a feature"],
)
def test_a_problem_is_reported_unless_another_prometheus_may_accept_the_expression(text: str, problem: object) -> None:
    assert promql_problem(text) == problem


@pytest.mark.parametrize("read,answer", [(promql_problem, UNKNOWN), (parsed, None)])
def test_a_panic_of_the_parser_gives_no_answer_and_an_interrupt_is_raised(read: Any, answer: Any) -> None:
    panic = type("PanicException", (BaseException,), {})
    for raised in (panic, KeyboardInterrupt):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(raised) if raised is KeyboardInterrupt else nullcontext():
            patch.setattr("promql_parser.parse", Mock(side_effect=raised))
            assert read(f"up + {raised.__name__}") is answer


@pytest.mark.parametrize("text", ["(" * 150 + "x" + ")" * 150, "abs(" * 150 + "x" + ")" * 150, "-" * 190 + "x", "+".join(["x"] * 190)])
def test_deep_nesting_is_read(text: str) -> None:
    tree = parsed(text)

    assert tree
    assert "x" in {node.name for node in walk(tree) if isinstance(node, Selector)}


@pytest.mark.parametrize("text", ["(" * 9000 + "x" + ")" * 9000, "-" * 9000 + "x", "+".join(["x"] * 9000), "x" + "[1h:1m]" * 2500])
def test_an_expression_that_would_crash_the_process_is_not_parsed(text: str) -> None:
    assert parsed(text) is None


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_no_text_raises_an_error(text: str) -> None:
    tree = parsed(text)

    assert tree is None or list(walk(tree))
