"""`python -m policies.pages`: writes docs/rules, one page a rule, from what the rules say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from policies.rules import all_rules
from policies.values.finding import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.judging import AnyRule
    from policies.values.parameters import Setting

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "rules"

_CLOUDS = {"gke": "GKE", "eks": "EKS"}


def pages() -> Mapping[str, str]:
    """The text of each page, by file name; the index is README.md."""
    rules = all_rules()
    rows = "".join(
        f"| {rule.code} | [`{rule.name}`]({rule.name}.md) | {rule.severity} | {_clouds(rule)} | {_summary(rule)} |\n" for rule in rules
    )
    index = (
        "# Rules\n\nOne page a rule, written by `python -m policies.pages` from the rules themselves.\n\n"
        f"| code | rule | severity | clouds | what it finds |\n|---|---|---|---|---|\n{rows}"
    )
    return {"README.md": index, **{f"{rule.name}.md": _page(rule) for rule in rules}}


def _page(rule: AnyRule) -> str:
    needs = "with the other objects of the run" if rule.judge_among else "alone"
    judged = f"Each {' or '.join(kind.__name__ for kind in rule.looks_at)} is judged {needs}."
    lines = [
        f"# {rule.name}",
        f"{_summary(rule)}",
        f"Code {rule.code}, severity {rule.severity}, level {rule.level} unless configured, on {_clouds(rule)}. {judged}",
        f"## Why\n\n{rule.why}",
        f"## What to do\n\n{rule.remediation}",
    ]
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


def _summary(rule: AnyRule) -> str:
    """The first line of the rule's file."""
    function = rule.judge_among or rule.judge
    module = __import__(function.__module__, fromlist=["__doc__"]) if function else None
    return ((module.__doc__ if module else "") or "").strip().partition("\n")[0]


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
