"""YAML as the linter reads it: the values that Kubernetes' tools see, duplicate keys, and limits."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flexspot.policies.lint.yaml_reading import DEPTH, FILLED_LATER, MAX_REPORTED_DUPLICATES, NODES, DocumentRefusedError, documents_in


def value_of(text: str | bytes) -> Any:
    [document] = documents_in(text.encode() if isinstance(text, str) else text)
    return document.value


@pytest.mark.parametrize(
    "written,value",
    [
        ("8", 8),
        ("+3", 3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0777", 511),
        ("0o17", 15),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("true", True),
        ("on", True),
        ("", None),
        ("1e3", "1e3"),
        ("2026-01-01", "2026-01-01"),
        ("12:30:00", "12:30:00"),
        ("'8'", "8"),
        ("!!str 8", "8"),
        ('!!int "8"', 8),
        ("!Ref name", "name"),
        ("|-\n  8", "8"),
        ("1" * 4000, "1" * 4000),
        ("'-'", "-"),
        ("0b_", "0b_"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_scalar_has_the_value_that_json_would_have(written: str, value: Any) -> None:
    read = value_of(f"a: {written}\n")["a"]

    assert (read, type(read)) == (value, type(value))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdefgh-./", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abcdefgh", min_size=1), json_values, min_size=1, max_size=5))
def test_dumped_values_are_read_back(value: dict[str, Any]) -> None:
    text = yaml.dump(value, allow_unicode=True, Dumper=yaml.CSafeDumper)

    if not set("{$%<@[") & set(text):
        assert value_of(text) == value


def test_a_duplicate_key_is_reported_with_both_lines_and_the_last_value_counts() -> None:
    [document] = documents_in(b"---\nspec:\n  limits: {gpu: 8}\n  taints: []\n  limits: {gpu: 80}\n")

    assert [(each.key, each.first_line, each.line) for each in document.duplicates] == [("limits", 3, 5)]
    assert document.value["spec"]["limits"] == {"gpu": 80}


@pytest.mark.parametrize(
    "text,count",
    [
        (b'{a: 1, "a": 2, \'a\': 3, "\\x61": 4}', 3),
        (b"a: 1\n" * 1000, MAX_REPORTED_DUPLICATES),
        (b"- {a: 1}\n- {a: 1, b: {a: 2}}\n", 0),
    ],
    ids=["however it is spelled", "at most the maximum", "in two mappings"],
)
def test_duplicates_are_those_of_one_mapping(text: bytes, count: int) -> None:
    [document] = documents_in(text)

    assert len(document.duplicates) == count


def test_written_keys_and_earlier_mappings_take_precedence_in_merges() -> None:
    text = "base: &base {a: 1, b: 1}\nother: &other {b: 2, c: 2}\nuses: {<<: [*base, *other], a: 3}\ntext: {'<<': x}\n"

    assert value_of(text)["uses"] == {"a": 3, "b": 1, "c": 2}
    assert value_of(text)["text"] == {"<<": "x"}


def test_placeholders_of_templates_are_unknown_values() -> None:
    text = "gpus: ${GPUS}\nname: '{{ .Values.name }}'\nplain: $HOME {x}\n"

    assert value_of(text) == {"gpus": FILLED_LATER, "name": FILLED_LATER, "plain": "$HOME {x}"}


@pytest.mark.parametrize(
    "written",
    [
        *("${GPUS}", "$GPUS", "$(GPUS)", "repo/$IMAGE:latest", "'{{ gpus }}'", "a-{{ gpus }}", "<gpus>", "<NUMBER OF GPUS>"),
        *("us-docker.pkg.dev/<project>/train:1", "'%{ if gpus }8%{ endif }'", "'%s'", "name-%d", "'%(gpus)s'", "'@gpus@'", "'[[ .gpus ]]'"),
    ],
)
def test_a_placeholder_is_an_unknown_value(written: str) -> None:
    assert value_of(f"a: {written}\n") == {"a": FILLED_LATER}


@pytest.mark.parametrize(
    "written",
    [
        *("50%", "'100%'", "'^gpu$'", "'$1'", "echo $HOME", "a < b", "'rate(x[5m]) < 3 > 2'", "user@example.com", "'{{'", "'[[a]]'"),
        *("'<b>bold</b> text'", "'sum($labels.gpu)'", "'python -m train --n=%d gpus'", "image@sha256:abc"),
    ],
)
def test_text_that_resembles_a_placeholder_keeps_its_value(written: str) -> None:
    expected = yaml.safe_load(written)

    assert value_of(f"a: {written}\n") == {"a": FILLED_LATER if expected in {"{{", "[[a]]"} else expected}


def test_an_unquoted_template_is_refused_as_a_template() -> None:
    with pytest.raises(DocumentRefusedError) as refused:
        documents_in(b"replicas: {{ .Values.replicas }}\n")

    assert refused.value.template


def bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 9) + "]" for level in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text,reason",
    [
        (bomb(30), "its aliases expand to over"),
        (b"a: &a\n  b: *a\n", "an alias in it refers to a value that contains it"),
        (b"a: " + b"[" * 100_000, "nested over"),
        (b"- " * 100_000 + b"x", "nested over"),
        (b"\n".join(b" " * depth + b"a:" for depth in range(2_000)), "nested over"),
        (b"[" * (DEPTH + 2) + b"]" * (DEPTH + 2), "nested over"),
        (b"[" + b"1," * (NODES + 1) + b"1]", "values"),
        (b"a: [1, 2\n", "it is not YAML"),
        (b'data: {a: "\n' * 10_000, "it is not YAML"),
        (b"a: \xff\xfe\n", "not UTF-8"),
        (b"a: \x01\n", "control characters"),
        (b"{[a]: b}", "a key in it is not text"),
        (b"a: b\n\tc: d\n", "it is not YAML"),
        (b"a: *unknown\n", "undefined alias"),
        (b"a: !!binary [1]\nb: &x 1\nb: &x 2\nc: {", "it is not YAML"),
    ],
    ids=lambda each: str(each)[:24],
)
def test_hostile_text_is_refused_quickly_with_a_reason(text: bytes, reason: str) -> None:
    started = time.process_time()
    with pytest.raises(DocumentRefusedError, match=reason):
        documents_in(text)

    assert time.process_time() - started < 10


def test_a_refusal_names_the_line_and_quotes_nothing() -> None:
    with pytest.raises(DocumentRefusedError) as refused:
        documents_in(b"a: 1\npassword: hunter2\n  b: [\n")

    assert refused.value.line >= 2
    assert "hunter2" not in str(refused.value)


def test_nesting_and_aliases_within_bounds_are_read() -> None:
    deep = "[" * (DEPTH - 1) + "1" + "]" * (DEPTH - 1)

    assert value_of(f"a: {deep}")["a"]
    assert value_of("a: &a [1, 2]\nb: [*a, *a, *a]\n")["b"] == [[1, 2]] * 3


@given(st.binary(max_size=200) | st.text("abc:-[]{}&*!|>'\"#%@`, \n\t?<~0.{$", max_size=60).map(str.encode))
def test_any_bytes_give_documents_or_a_refusal(text: bytes) -> None:
    with suppress(DocumentRefusedError):
        documents_in(text)
