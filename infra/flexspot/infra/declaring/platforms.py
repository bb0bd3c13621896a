"""Whole platforms as components: the resources that `flexspot up` declares for a stack file, in a program of any language."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pulumi

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import SettingsError, SettingsProblem
from flexspot.infra.declaring.program import declare


class PlatformArgs(TypedDict):
    """Arguments of a whole platform."""

    platform: dict[str, Any]
    """The platform's settings: the contents of `flexspot:platform` in a stack file. A file that they name (`prices_file`,
    `cluster.images_file`, `admission.rules_file`) needs an absolute path."""


class _Platform(pulumi.ComponentResource):
    """A whole platform with its outputs."""

    cluster: pulumi.Output[str]
    """The cluster's name."""

    credentials_command: pulumi.Output[str]
    """The command that writes a kubeconfig for the cluster."""

    dashboards: pulumi.Output[str]
    """The address of the cluster in the cloud's console."""

    buckets: pulumi.Output[dict[str, str]]
    """The buckets' URLs, by purpose."""

    queues: pulumi.Output[dict[str, str]]
    """The team's LocalQueue, by namespace."""

    def __init__(self, name: str, cloud: Platform, args: PlatformArgs, opts: pulumi.ResourceOptions | None) -> None:
        """Declare the platform with its parts, and keep all their outputs in `_exported`. Raises SettingsError for invalid settings."""
        kind = type(self).__name__
        source = f"{kind} {name} platform"
        if unknown := [SettingsProblem(path, "", "cannot be an output", "give the value itself") for path in _outputs(args["platform"])]:
            raise SettingsError(source, unknown)
        settings = parse_settings(args["platform"], source)
        if settings.cloud != cloud:
            problem = SettingsProblem("cloud", repr(settings.cloud.value), f"is not the cloud of {kind}", f"use {cloud}")
            raise SettingsError(source, [problem])
        if relative := _relative_files(settings):
            raise SettingsError(source, relative)
        super().__init__(f"flexspot:index:{kind}", name, {}, opts)
        exported = declare(settings, source, Path("/"), self)
        self.cluster = _output(exported, "cluster")
        self.credentials_command = _output(exported, "credentials_command")
        self.dashboards = _output(exported, "dashboards")
        self.buckets = _output(exported, "buckets")
        self.queues = _output(exported, "queues")
        self._exported = exported
        self.register_outputs(exported)


class GkePlatform(_Platform):
    """A whole platform on GKE: cluster, capped GPU pools, Kueue, teams with queues and storage, rules of the API server, monthly cost.

    It declares what `flexspot up` deploys for a stack file with the same settings. A program can have one: its parts have fixed names.
    """

    subscriptions: pulumi.Output[dict[str, str]]
    """The Pub/Sub subscription of a team's work queue, by team."""

    def __init__(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the platform. Raises SettingsError for invalid settings."""
        super().__init__(name, Platform.GKE, args, opts)
        self.subscriptions = _output(self._exported, "subscriptions")


class EksPlatform(_Platform):
    """A whole platform on EKS: cluster, Karpenter, capped GPU pools, Kueue, teams with queues and storage, admission rules, monthly cost.

    It declares what `flexspot up` deploys for a stack file with the same settings. It has its own AWS provider, which rejects credentials
    of another account. A program can have one: its parts have fixed names.
    """

    work_queues: pulumi.Output[dict[str, str]]
    """The SQS URL of a team's work queue, by team."""

    def __init__(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the platform. Raises SettingsError for invalid settings."""
        super().__init__(name, Platform.EKS, args, opts)
        self.work_queues = _output(self._exported, "work_queues")


PLATFORMS = (EksPlatform, GkePlatform)


def _output(exported: dict[str, pulumi.Input[Any]], name: str) -> pulumi.Output[Any]:
    return pulumi.Output.from_input(exported[name])


def _outputs(value: object, path: str = "") -> Iterator[str]:
    """Yield the paths of values in settings that are outputs, known only in a deployment."""
    if isinstance(value, pulumi.Output):
        yield path or "(all)"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _outputs(each, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _outputs(each, f"{path}.{number}")


def _relative_files(settings: object) -> list[SettingsProblem]:
    """Return a problem for each relative path. Paths in a stack file are relative to its folder, and a component has none."""
    if not isinstance(settings, EksSettings | GkeSettings):
        return []
    named = {"prices_file": settings.prices_file, "admission.rules_file": settings.admission.rules_file}
    if isinstance(settings, EksSettings):
        named["cluster.images_file"] = settings.cluster.images_file
    return [
        SettingsProblem(setting, repr(path), "is relative to a stack file, but the platform has none", "give an absolute path")
        for setting, path in named.items()
        if path is not None and not Path(path).is_absolute()
    ]
