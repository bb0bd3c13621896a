"""The proposed stack as a stack file: a line for each pool and team below what of it is a guess; what is not mapped stands on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from capacity.adopting.found import one_line
from capacity.catalog.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.adopting.found import Remark
    from capacity.adopting.proposal import Proposal

_LISTED: Final = ("pools", "teams", "cohorts")
_SHOWN: Final = 3
# For the empty passphrase: there is no secret in a lab's stack.
_SALT: Final = "v1:lazcPgDc2xw=:v1:aJUqMLBDmcGdCrjF:QPdHMgWUJ0pGQxtnw8qT3w43/8AnqA=="


def in_words(remark: Remark) -> str:
    """What is not mapped, why and what to do, on one line; of many addresses the first."""
    shown = ", ".join(remark.addresses[:_SHOWN])
    more = f" and {len(remark.addresses) - _SHOWN} more" if len(remark.addresses) > _SHOWN else ""
    return one_line(f"{shown}{more}: {remark.why}; {remark.remedy}.")


def flow(value: Any) -> str:
    """A value as YAML on one line, quoted where it has to be: no value becomes syntax."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=100_000).removesuffix("\n").removesuffix("\n...")


def stack_text(proposal: Proposal, source: str) -> str:
    """The stack file. `source` says in a few words what it was made from."""
    return "\n".join([*_lines(proposal, one_line(source)), ""])


def _lines(proposal: Proposal, source: str) -> Iterator[str]:
    settings = proposal.settings
    yield "# yaml-language-server: $schema=platform.schema.json"
    yield f"# Proposed by flexspot import from {source}. `guess` marks what nothing said: read these lines first."
    if proposal.remarks:
        yield "# Not mapped:"
    for each in proposal.remarks:
        yield f"# - {in_words(each)}"
    yield "config:"
    if settings["cloud"] == Platform.GKE:
        yield f"  gcp:project: {flow(settings['project'])}"
        yield f"  gcp:region: {flow(settings['region'])}"
    elif settings["cloud"] == Platform.EKS:
        yield f"  aws:region: {flow(settings['region'])}"
    yield "  flexspot:platform:"
    guesses: dict[str, list[str]] = {}
    for guess in proposal.guesses:
        first, _, rest = guess.path.partition(".")
        key = f"{first}.{rest.partition('.')[0]}" if first in _LISTED and rest else first
        inside = guess.path.removeprefix(key).lstrip(".")
        guesses.setdefault(key, []).append(one_line(f"guess{f', {inside}' if inside else ''}: {guess.why}"))
    for key, value in settings.items():
        yield from (f"    # {told}" for told in guesses.get(key, []))
        if key in _LISTED:
            yield f"    {key}:"
            for each in value:
                yield from _member(key, each, guesses, proposal.addresses)
        else:
            yield f"    {key}: {flow(value)}"
    if settings["cloud"] == Platform.LOCAL:
        yield "# For the empty passphrase: there is no secret in this stack. It stands here so that the engine does not write it here."
        yield f"encryptionsalt: {_SALT}"


def _member(key: str, each: Mapping[str, Any], guesses: Mapping[str, list[str]], addresses: Mapping[str, str]) -> Iterator[str]:
    path = f"{key}.{each['name']}"
    if path in addresses:
        yield f"      # {one_line(addresses[path])}"
    yield from (f"      # {told}" for told in guesses.get(path, []))
    yield f"      - {flow(dict(each))}"
