"""Kueue's configuration: a file of its own, an entry of a ConfigMap, or a value of the chart's release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from policies.field import Field
from policies.objects import KueueConfiguration
from policies.unknown import UNKNOWN, Tri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.reading.source import Source

_GROUP = "config.kueue.x-k8s.io"
_ENTRY = "controller_manager_config.yaml"
"""The entry of Kueue's ConfigMap; other programs name theirs so, too."""

_VALUE = ("values", "managerConfig", "controllerManagerConfigYaml")


def read(source: Source) -> Iterator[KueueConfiguration]:
    """The configuration in the object, if it holds one."""
    kind = (source.family, source.kind)
    if kind == (_GROUP, "Configuration"):
        yield _configuration(source, "", source.fields)
    elif kind == ("", "ConfigMap"):
        written = source.fields.at("data", _ENTRY)
        parsed = _parsed(written)
        if str(parsed.at("apiVersion").text()).startswith(f"{_GROUP}/"):
            yield _configuration(source, f"data[{_ENTRY}].", parsed)
    elif kind == ("helm.sh", "Release"):
        chart = source.fields.at("chart").text()
        if isinstance(chart, str) and chart.rstrip("/").rpartition("/")[2] == "kueue":
            yield _release(source)


def _release(source: Source) -> KueueConfiguration:
    """Where no value is given the chart's own configuration counts, in which fair sharing is off (charts/kueue of Kueue 0.19)."""
    where, written = f"{'.'.join(_VALUE)}.", source.fields.at(*_VALUE)
    if written.absent:
        elsewhere = not source.fields.at("valueYamlFiles").absent
        return _configuration(source, where, Field(UNKNOWN if elsewhere else {}))
    return _configuration(source, where, _parsed(written))


def _parsed(written: Field) -> Field:
    """The configuration in a text; UNKNOWN for one that is not known yet, and for one that is no YAML."""
    text = written.value
    if not isinstance(text, str):
        return Field(text if text is UNKNOWN else None)
    try:
        parsed: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return Field(UNKNOWN)
    return Field(parsed)


def _configuration(source: Source, where: str, fields: Field) -> KueueConfiguration:
    return KueueConfiguration(source.identity, True, source.fields.partial, f"{where}fairSharing", _fair_sharing(fields))


def _fair_sharing(fields: Field) -> Tri:
    """On where the stanza is there; v1beta1 has a switch in it besides, which is off where it is not written."""
    stanza = fields.at("fairSharing")
    if not stanza.known:
        return UNKNOWN
    if stanza.absent:
        return False
    old = fields.at("apiVersion").equals(f"{_GROUP}/v1beta1")
    return stanza.at("enable").equals("true") if old is True else True
