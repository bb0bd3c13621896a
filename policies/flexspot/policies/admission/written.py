"""CEL that is written in the YAML files of this folder, with the facts of Python that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.policies.admission.cel import first_of, let, sentence, text, texts
from flexspot.policies.admission.pods import containers_where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Fact = str | int | Iterable[str] | Mapping[str, str | Iterable[str]]

_NAME = re.compile(r"\$(parameters\.[a-z0-9-]+|\w+)(\()?")
_CEL = re.compile(r"\{([^{}]+)\}")
_FIELD = re.compile(r"\{(\w+)\}")
_SIGN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<sign>[^'"])""")


def read(file: str) -> dict[str, Any]:
    """Return the content of a file of this folder."""
    return yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def explain(message: str, remedy: str, **parts: str) -> str:
    """Return CEL for one problem. `message` and `remedy` have fields in braces, which are replaced by `parts`, CEL expressions."""
    return sentence(f"{message}. To fix it: {remedy}", **parts)


def terms_of(written: Mapping[str, str]) -> dict[str, tuple[list[str], str]]:
    """Return terms that are written under NAME or NAME(PARAMETER, ...)."""
    return {name: (parameters, each) for key, each in written.items() for name, *parameters in [re.findall(r"\w+", key)]}


@dataclass(frozen=True)
class Names:
    """The meanings of $NAME and $NAME(ARGUMENTS) in CEL of the files."""

    facts: Mapping[str, Any]
    """Values of Python, which become literals. A text with fields in braces can be called with CEL for its fields, in their order."""
    terms: Mapping[str, tuple[list[str], str]] = field(default_factory=dict[str, tuple[list[str], str]])
    """Names of parameters, and CEL with each of them as $PARAMETER. See `terms_of`."""
    functions: Mapping[str, Callable[..., str]] = field(default_factory=dict[str, "Callable[..., str]"])
    """Functions of Python that return CEL, and take their arguments as CEL."""

    def but(self, **facts: Fact) -> Names:
        """Return these names with further facts."""
        return replace(self, facts={**self.facts, **facts})

    def cel(self, written: str, arguments: Mapping[str, str] | None = None) -> str:
        """Return the expression with what its names mean. `arguments` are CEL."""
        made: list[str] = []
        while found := _NAME.search(written):
            given, rest = _arguments(written[found.end() :]) if found[2] else ([], written[found.end() :])
            made += [written[: found.start()], self._meaning(found[1], [self.cel(each, arguments) for each in given], arguments or {})]
            written = rest
        return "".join([*made, written])

    def _meaning(self, name: str, given: list[str], arguments: Mapping[str, str]) -> str:
        if name in arguments:
            return _operand(arguments[name])
        if name in self.functions:
            return self.functions[name](*given)
        if name in self.terms:
            parameters, body = self.terms[name]
            return _operand(self.cel(body, dict(zip(parameters, given, strict=True))))
        fact = self.facts[name]
        return _operand(sentence(fact, **dict(zip(dict.fromkeys(_FIELD.findall(fact)), given, strict=True)))) if given else _literal(fact)

    def problems(self, written: dict[str, Any]) -> str:
        """Return CEL for the list of a rule's problems of one sort."""
        if "of" in written:
            return f"{self.cel(written['of'])}.map(p, {self._first_of(written)}).filter(s, s != '')"
        return " + ".join(map(self._problems, self._versions(written)))

    def _problems(self, written: dict[str, Any]) -> str:
        problem = self._words(written)
        if "pods" in written:
            return f"variables.pods.filter(p, {self.cel(written['pods'])}).map(p, {problem})"
        if "each" in written:
            name, listed = self.cel(written["each"]).split(" in ", 1)
            chosen = f"({listed}).filter({name}, {self.cel(written['if'])})" if "if" in written else f"({listed})"
            return f"{chosen}.map({name}, {problem})"
        return f"(({self.cel(written['if'])}) ? [{problem}] : [])"

    def _first_of(self, written: dict[str, Any]) -> str:
        """Return CEL for the first problem of the pod set `p`, or an empty string."""
        otherwise = self._first_of(written["otherwise"]) if "otherwise" in written else "''"
        if "containers" in written:
            listed = (containers_where(self.cel(each["containers"]), self._words(each)) for each in self._versions(written))
            problem = let("found", " + ".join(listed), first_of(("size(found) > 0", "found[0]"), otherwise=otherwise))
        else:
            problem = first_of((self.cel(written["if"]), self._words(written)), otherwise=otherwise)
        for name, value in reversed(written.get("let", {}).items()):
            problem = let(name, self.cel(value), problem)
        return problem

    def _versions(self, written: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the problem with each value of its `for`."""
        word, _, constant = written.get("for", "").partition(" in ")
        for value in self.facts[constant] if word else [""]:
            yield _with(written, word, value) if word else written

    def _words(self, written: dict[str, Any]) -> str:
        """Return CEL for the text of a problem: of constants with `fields`, or of texts with CEL in braces."""
        parts = {name: self.cel(each) for name, each in {"where": "p.where", **written.get("fields", {})}.items()}

        def part(found: re.Match[str]) -> str:
            name = f"part{len(parts)}"
            parts[name] = self.cel(found[1])
            return f"{{{name}}}"

        message, fix = (
            self.facts[each[1:]] if each.startswith("$") else _CEL.sub(part, each)
            for each in (written["message"], written.get("fix", "$remediation"))
        )
        return explain(message, fix, **parts)


def _literal(fact: Fact) -> str:
    if isinstance(fact, str):
        return text(fact)
    if isinstance(fact, int):
        return str(fact)
    if isinstance(fact, Mapping):
        return "{" + ", ".join(f"{text(key)}: {_literal(value)}" for key, value in fact.items()) + "}"
    return texts(fact)


def _arguments(written: str) -> tuple[list[str], str]:
    """Return the arguments of a call, and what follows it. `written` begins after the opening parenthesis."""
    commas = [-1]
    for at, sign, depth in _signs(written):
        if depth < 0:
            commas.append(at)
            return [written[start + 1 : end].strip() for start, end in pairwise(commas)], written[at + 1 :]
        if sign == "," and not depth:
            commas.append(at)
    raise ValueError(f"a call without an end: {written}")


def _operand(expression: str) -> str:
    """Return the expression in parentheses if it has operators. Parsers count parentheses, and support only some 30 levels."""
    has_operators = expression.startswith("!") or any(sign == " " and not depth for _, sign, depth in _signs(expression))
    return f"({expression})" if has_operators else expression


def _signs(written: str) -> Iterator[tuple[int, str, int]]:
    """Yield the place of each character outside of texts, the character, and how many brackets are open after it."""
    depth = 0
    for found in _SIGN.finditer(written):
        if sign := found["sign"]:
            depth += (sign in "([{") - (sign in ")]}")
            yield found.start(), sign, depth


def _with(written: Any, word: str, value: str) -> Any:
    """Return the part of a problem with a value for a word."""
    if isinstance(written, dict):
        return {name: _with(each, word, value) for name, each in written.items()}
    return re.sub(rf"\b{word}\b", value, written)
