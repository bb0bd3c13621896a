"""What a program may say to the Kubernetes provider, and that it speaks to the lab and to nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from flexspot.lab.ports import HOST
from flexspot.lab.providers.values import Properties, has_unknown, is_object, plain

_LOOPBACK = {HOST, "localhost", "::1"}


class ProviderSettingsError(Exception):
    """A setting of the provider is wrong; the text says which, what is allowed and what to do."""


@dataclass(frozen=True)
class ProviderSettings:
    """The settings that the stand-in acts on, with the official provider's defaults.

    `namespace` is for namespaced objects that name none, "" for `default`. The two next say whether a change of the data of ConfigMaps
    and Secrets is made in place instead of by replacement. `upsert` takes over what exists already when it should be created, and
    `patch_force` takes every field over from whoever manages it.
    """

    namespace: str = ""
    config_maps_mutable: bool = False
    secrets_mutable: bool = False
    upsert: bool = False
    patch_force: bool = False


def server_of(kubeconfig: Path | str, context: str = "", cluster: str = "") -> str:
    """The address that a kubeconfig (a file, or its text in YAML or JSON) leads to. Raises SettingsError when there is none."""
    where = f"the file {kubeconfig}" if isinstance(kubeconfig, Path) else "the kubeconfig given as text"
    try:
        text = kubeconfig.read_text(encoding="utf-8") if isinstance(kubeconfig, Path) else kubeconfig
        content: Any = yaml.safe_load(text)
        context = context or content["current-context"]
        cluster = cluster or next(each["context"]["cluster"] for each in content["contexts"] if each["name"] == context)
        return str(next(each["cluster"]["server"] for each in content["clusters"] if each["name"] == cluster))
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise ProviderSettingsError(
            f"{where} leads to no server (context {context!r}, cluster {cluster!r}; {type(error).__name__}: {error}). "
            "Leave `kubeconfig`, `context` and `cluster` out, or give the kubeconfig of the lab."
        ) from error


def require_loopback(server: str) -> None:
    """Raises SettingsError unless `server` is on this machine."""
    if urlsplit(server).hostname not in _LOOPBACK:
        raise ProviderSettingsError(
            f"the stand-in Kubernetes provider was started for {server}, which is not on {HOST}. It is for the local control plane "
            "alone; use the real provider for any other server."
        )


def read_settings(given: Properties, bound: Path) -> ProviderSettings:
    """The settings of a program's provider. Raises SettingsError when they lead elsewhere than `bound`, or ask for what is not done."""
    values: Properties = {key: _value(each) for key, each in plain(given).items()}
    _require_bound_server(values, bound)
    if values.get("enableServerSideApply") in (False, "false"):
        raise ProviderSettingsError(
            "enableServerSideApply: false is not offered by the stand-in provider; leave it out, as server-side apply is the default."
        )
    if values.get("renderYamlToDirectory"):
        raise ProviderSettingsError("renderYamlToDirectory is not offered by the stand-in provider; leave it out.")
    return settings_in(values)


def settings_in(values: Properties) -> ProviderSettings:
    """What of a provider's settings, as the engine has them, the stand-in acts on."""
    namespace = values.get("namespace")
    return ProviderSettings(
        namespace if isinstance(namespace, str) else "",
        *(
            values.get(name) in (True, "true")
            for name in ("enableConfigMapMutable", "enableSecretMutable", "upsertExistingObjects", "enablePatchForce")
        ),
    )


def changed_settings(old: Properties, new: Properties) -> list[str]:
    """The names of the settings that differ."""
    old, new = plain(old), plain(new)
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _require_bound_server(values: Properties, bound: Path) -> None:
    own = server_of(bound)
    require_loopback(own)
    kubeconfig, context, cluster = (values.get(key) or "" for key in ("kubeconfig", "context", "cluster"))
    if has_unknown([kubeconfig, context, cluster]) or not (kubeconfig or context or cluster):
        return
    if is_object(kubeconfig):
        kubeconfig = json.dumps(kubeconfig)
    source: Path | str = kubeconfig or bound
    if isinstance(source, str) and "\n" not in source and not source.lstrip().startswith("{"):
        source = Path(source).expanduser()
    server = server_of(source, context, cluster)
    if not urlsplit(server).netloc:
        # The official provider's words, from client-go: what an unknown address that became "" looks like.
        raise ProviderSettingsError(f'failed to initialize discovery client: host must be a URL or a host:port pair: "{server}"')
    if server != own:
        raise ProviderSettingsError(
            f"the provider's kubeconfig leads to {server}, but this stand-in provider serves the lab at {own} alone. "
            f"Give the lab's kubeconfig ({bound}) or none; for another server use the real provider, without `cloud: local`."
        )


def _value(each: Any) -> Any:
    # The engine sends objects and booleans of a provider's settings as JSON text.
    if isinstance(each, str) and each[:1] in {"{", '"'}:
        try:
            return json.loads(each)
        except ValueError:
            return each
    return each
