"""`python -m policies.pages`: writes docs/rules, one page a rule, from what the rules say of themselves and from their fixtures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from policies.rules import all_rules
from policies.values.finding import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.judging import AnyRule
    from policies.values.parameters import Setting

_CHECKOUT = Path(__file__).resolve().parents[1]
FOLDER = _CHECKOUT / "docs" / "rules"
FIXTURES = _CHECKOUT / "tests" / "policies" / "rules"

_CLOUDS = {"gke": "GKE", "eks": "EKS"}


def pages() -> Mapping[str, str]:
    """The text of each page, by file name; the index is README.md."""
    rules = all_rules()
    rows = "".join(
        f"| {rule.code} | [`{rule.name}`]({rule.name}.md) | {rule.severity} | {rule.level} | {_clouds(rule)} | {rule.summary} |\n"
        for rule in rules
    )
    index = (
        "# Rules\n\nOne page a rule, written by `python -m policies.pages` from the rules themselves.\n\n"
        f"| code | rule | severity | level | clouds | what it finds |\n|---|---|---|---|---|---|\n{rows}"
    )
    return {"README.md": index, **{f"{rule.name}.md": _page(rule) for rule in rules}}


def _page(rule: AnyRule) -> str:
    needs = "with the other objects of the run" if rule.judge_among else "alone"
    judged = f"Each {' or '.join(kind.__name__ for kind in rule.looks_at)} is judged {needs}."
    lines = [
        f"# {rule.name}",
        f"{rule.summary}",
        f"Code {rule.code}, severity {rule.severity}, level {rule.level} unless configured, on {_clouds(rule)}. {judged}",
        f"## Why\n\n{rule.why}",
        f"## What to do\n\n{rule.remediation}",
    ]
    lines += _examples(rule)
    if rule.parameters:
        rows = "\n".join(f"| `{each.name}` | {_written(each.default)} | {each.meaning} |" for each in rule.parameters)
        lines.append(f"## Parameters\n\n| name | default | meaning |\n|---|---|---|\n{rows}")
    accepted = (
        "The rule is locked: it cannot be suppressed."
        if rule.locked
        else f"On the object or its pod template:\n\n    {PREFIX}{rule.name}: why this is accepted; until=2026-12-31; by=who answers for it"
    )
    lines.append(f"## Accepting a violation\n\n{accepted}")
    lines.append("## Sources\n\n" + "\n".join(f"- {source}" for source in (rule.link, *rule.sources)))
    return "\n\n".join(lines) + "\n"


_UNKNOWN = object()
"""What a preview does not know yet, `!unknown` in a fixture: an example leaves it out."""


class _Loader(yaml.CSafeLoader):
    """Knows `!unknown`."""


def _left_out(_loader: _Loader, _node: yaml.Node) -> object:
    return _UNKNOWN


_Loader.add_constructor("!unknown", _left_out)


def _examples(rule: AnyRule) -> list[str]:
    """What breaks the rule and what keeps it: the first fixture that fails, and the first of its kind, or of any, that passes."""
    fails, passes = (_fixtures(rule, word) for word in ("fails", "passes"))
    if not fails or not passes:
        return []
    bad = min(fails, key=lambda each: (_has_unknown(each), _is_a_resource(each)))
    good = min(passes, key=lambda each: (_has_unknown(each), _kind(each) != _kind(bad), _is_a_resource(each)))
    return [f"## Breaks it\n\n{_shown(bad)}", f"## Keeps it\n\n{_shown(good)}"]


def _fixtures(rule: AnyRule, word: str) -> list[dict[str, Any]]:
    paths = sorted((FIXTURES / rule.name.replace("-", "_")).glob(f"{word}_*.yaml"))
    return [document for path in paths for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_Loader)]


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unknown, cast("dict[str, Any]", value).values()))
    return value is _UNKNOWN or (isinstance(value, list) and any(map(_has_unknown, cast("list[Any]", value))))


def _is_a_resource(fixture: dict[str, Any]) -> bool:
    """Of a cloud's provider; everybody reads manifests."""
    return "resource" in fixture


def _kind(fixture: dict[str, Any]) -> str:
    return str(fixture.get("resource") or fixture.get("kind"))


def _shown(fixture: dict[str, Any]) -> str:
    """A fixture as YAML: a manifest as it is, a resource as Pulumi's YAML has it; and what else there must be."""
    own = yaml.safe_dump(_plain(_written_as(fixture)), sort_keys=False, width=120).rstrip()
    beside = "".join(
        f"\n---\n# beside it\n{yaml.safe_dump(_plain(_written_as(each)), sort_keys=False, width=120).rstrip()}"
        for each in fixture.get("among") or ()
    )
    return f"```yaml\n{own}{beside}\n```"


def _written_as(fixture: dict[str, Any]) -> dict[str, Any]:
    if _is_a_resource(fixture):
        return {"resources": {fixture["name"]: {"type": fixture["resource"], "properties": fixture.get("inputs", {})}}}
    return {key: value for key, value in fixture.items() if key != "among"}


def _plain(value: Any) -> Any:
    """Without what is left out; a whole number as people write it: fixtures have the engine's floats."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in cast("dict[str, Any]", value).items() if each is not _UNKNOWN}
        case list():
            return [_plain(each) for each in cast("list[Any]", value) if each is not _UNKNOWN]
        case float():
            return int(value) if value.is_integer() else value
        case _:
            return value


def _clouds(rule: AnyRule) -> str:
    return " and ".join(_CLOUDS[cloud] for cloud in rule.clouds)


def _written(setting: Setting) -> str:
    return ", ".join(f"`{each}`" for each in setting) if isinstance(setting, tuple) else f"`{setting}`"


def main() -> None:
    """Writes the pages and takes away those of rules that are no more."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
