"""The pages of docs/rules, one per rule, from the rules and their fixtures. `python -m flexspot.policies.pages` writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from flexspot.policies.rules import all_rules
from flexspot.policies.values.finding import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.policies.judging import Rule, Setting

_CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = _CHECKOUT / "docs" / "rules"
FIXTURES = _CHECKOUT / "tests" / "policies" / "rules"

_CLOUDS = {"gke": "GKE", "eks": "EKS"}


def pages() -> Mapping[str, str]:
    """Return the text of each page by file name. The index is README.md."""
    rules = all_rules()
    rows = "".join(
        f"| {rule.code} | [`{rule.name}`]({rule.name}.md) | {rule.severity} | {rule.level} | {_clouds(rule)} | {rule.summary} |\n"
        for rule in rules
    )
    index = (
        "# Rules\n\nOne page a rule, written by `python -m flexspot.policies.pages` from the rules themselves.\n\n"
        f"| code | rule | severity | level | clouds | what it finds |\n|---|---|---|---|---|---|\n{rows}"
    )
    return {"README.md": index, **{f"{rule.name}.md": _page(rule) for rule in rules}}


def _page(rule: Rule) -> str:
    needs = "with the other objects of the run" if rule.among else "alone"
    judged = f"Each {' or '.join(kind.__name__.removesuffix('View') for kind in rule.looks_at)} is judged {needs}."
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
    accepted = f"    {PREFIX}{rule.name}: the reason; until=2026-12-31; by=the person who accepts it"
    lines.append(f"## Accepting a violation\n\nOn the object or its pod template:\n\n{accepted}")
    lines.append("## Sources\n\n" + "\n".join(f"- {source}" for source in (rule.link, *rule.sources)))
    return "\n\n".join(lines) + "\n"


_UNKNOWN = object()
"""The value of `!unknown` in a fixture, which a preview does not know yet. Examples omit it."""


class _Loader(yaml.CSafeLoader):
    """A loader that reads `!unknown`."""


def _unknown(_loader: _Loader, _node: yaml.Node) -> object:
    return _UNKNOWN


_Loader.add_constructor("!unknown", _unknown)


class _PageDumper(yaml.SafeDumper):
    """A dumper that writes whole numbers without a fraction. Fixtures contain the engine's floats."""


def _number(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    return dumper.represent_int(int(value)) if value.is_integer() else dumper.represent_float(value)


_PageDumper.add_representer(float, _number)


def _examples(rule: Rule) -> list[str]:
    """Return the fixtures that page_examples.yaml names for the rule: one that fails and one that passes."""
    bad, good = (_fixture(rule, *each) for each in zip(("fails", "passes"), _page_examples()[rule.name], strict=True))
    return [f"## Breaks it\n\n{_shown(bad)}", f"## Keeps it\n\n{_shown(good)}"]


@cache
def _page_examples() -> Mapping[str, tuple[str, str]]:
    return yaml.safe_load((FIXTURES / "page_examples.yaml").read_text(encoding="utf-8"))


def _fixture(rule: Rule, word: str, name: str) -> dict[str, Any]:
    """Return the first fixture of a verdict with this name, without its unknown values."""
    paths = sorted((FIXTURES / rule.name.replace("-", "_")).glob(f"{word}_*.yaml"))
    documents = (each for path in paths for each in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_Loader))
    return _known(next(each for each in documents if name == (each.get("name") or each["metadata"]["name"])))


def _known(value: Any) -> Any:
    match value:
        case dict():
            return {key: _known(each) for key, each in cast("dict[str, Any]", value).items() if each is not _UNKNOWN}
        case list():
            return [_known(each) for each in cast("list[Any]", value) if each is not _UNKNOWN]
        case _:
            return value


def _shown(fixture: dict[str, Any]) -> str:
    """Return a fixture as YAML, followed by the other objects that it needs."""
    others = fixture.pop("among", ())
    written = (yaml.dump(_written_as(each), Dumper=_PageDumper, sort_keys=False, width=120) for each in (fixture, *others))
    return "```yaml\n" + "---\n# along with it\n".join(written) + "```"


def _written_as(fixture: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest as it is, and a cloud's resource as Pulumi's YAML has it."""
    if "resource" not in fixture:
        return fixture
    return {"resources": {fixture["name"]: {"type": fixture["resource"], "properties": fixture.get("inputs", {})}}}


def _clouds(rule: Rule) -> str:
    return " and ".join(_CLOUDS[cloud] for cloud in rule.clouds)


def _written(setting: Setting) -> str:
    return ", ".join(f"`{each}`" for each in setting) if isinstance(setting, tuple) else f"`{setting}`"


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
