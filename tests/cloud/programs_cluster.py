"""The Kubernetes provider of the tests: the lab's stand-in, bound to the kubeconfig that the program gives it.

Without a kubeconfig, as in the first preview of a new cluster, it answers like the official one: with the inputs.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cloud_folder import Event
from cloud_provider import RELEASE, CloudProvider
from kubernetes.config import ConfigException
from pulumi.runtime.proto import provider_pb2
from ways_in import kept_out

from flexspot.lab.providers.kubernetes import VERSION, KubernetesStandIn, ProviderSettingsError
from flexspot.lab.providers.objects import type_of
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.planning import diff_answer, differences, top_level
from flexspot.lab.providers.serving import abort
from flexspot.lab.providers.values import UNKNOWN, decode, has_unknown, plain

if TYPE_CHECKING:
    import grpc
    from cloud_folder import CloudFolder

PATIENCE_SECONDS = 20.0


class ProgramsCluster(OfflineProvider):
    """Passes requests about objects to the stand-in. Releases are kept in the cloud's folder, and no chart is rendered.

    What a chart installs is already on the lab's control plane (Kueue, Karpenter), or no test looks at it.
    """

    def __init__(self, cloud: CloudFolder) -> None:
        super().__init__("kubernetes", VERSION)
        self._cloud = cloud
        self._releases = CloudProvider("kubernetes", VERSION, cloud)
        self._folder = tempfile.TemporaryDirectory(prefix="programs-cluster-")
        self._objects: KubernetesStandIn | None = None
        self._unreachable = ""

    def close(self) -> None:
        """End all calls that wait."""
        if self._objects is not None:
            self._objects.close()
        self._folder.cleanup()

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Report no change: another kubeconfig of the same cluster is the same provider."""
        return KubernetesStandIn.DiffConfig(self, request, context)  # pyrefly: ignore[bad-argument-type] -- asks nothing of its self

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Read the kubeconfig and check that it leads to a cluster, which runs the program that gives credentials."""
        self._releases.Configure(request, context)
        given = plain(decode(request.args))
        kubeconfig = given.get("kubeconfig", UNKNOWN)
        if not has_unknown(kubeconfig):
            file = self._file_of(kubeconfig)
            try:
                self._unreachable = kept_out(self._cloud, server_of(file))
                self._objects = None if self._unreachable else KubernetesStandIn(file, PATIENCE_SECONDS)
            except (ConfigException, ProviderSettingsError, OSError) as error:
                self._unreachable = str(error)
            if self._objects is not None:
                return self._objects.Configure(request, context)
        return super().Configure(request, context)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the inputs with a name. A release already has one."""
        if type_of(request.urn) == RELEASE:
            return provider_pb2.CheckResponse(inputs=request.news)
        return self._objects.Check(request, context) if self._objects else super().Check(request, context)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the changes. Another name or namespace makes another release."""
        if type_of(request.urn) == RELEASE:
            return _release_diff(plain(decode(request.old_inputs)), plain(decode(request.news)))
        return self._objects.Diff(request, context) if self._objects else super().Diff(request, context)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Create an object or a release."""
        if request.preview:
            is_object = self._objects and type_of(request.urn) != RELEASE and not self._unreachable
            return self._objects.Create(request, context) if is_object and self._objects else super().Create(request, context)
        return self._forward("Create", request, context)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return an object or a release as it is now."""
        objects = self._reached(context)
        if type_of(request.urn) == RELEASE:
            return self._releases.Read(request, context)
        self._cloud.note(Event("read", request.urn, "done", request.id))
        return objects.Read(request, context)

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Change an object or a release."""
        if request.preview:
            is_object = self._objects and type_of(request.urn) != RELEASE
            return self._objects.Update(request, context) if is_object and self._objects else super().Update(request, context)
        return self._forward("Update", request, context, request.id)

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Delete an object or a release."""
        return self._forward("Delete", request, context, request.id)

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Answer as the stand-in does."""
        return self._objects.Invoke(request, context) if self._objects else super().Invoke(request, context)

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """End all calls that wait."""
        return self._objects.Cancel(request, context) if self._objects else super().Cancel(request, context)

    def _file_of(self, kubeconfig: Any) -> Path:
        """Return the file of a kubeconfig, which a program gives as a path or as the text."""
        text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
        if "\n" not in text and not text.lstrip().startswith("{"):
            return Path(text)
        file = Path(self._folder.name) / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return file

    def _reached(self, context: grpc.ServicerContext) -> KubernetesStandIn:
        if self._objects is None:
            abort(context, f"configured Kubernetes cluster is unreachable: {self._unreachable or 'the kubeconfig is not known yet'}")
        return self._objects

    def _forward(self, method: str, request: Any, context: grpc.ServicerContext, identity: str = "") -> Any:
        """Call the provider that the resource belongs to, and record the result. The release provider does that itself."""
        objects = self._reached(context)
        if type_of(request.urn) == RELEASE:
            return getattr(self._releases, method)(request, context)
        self._cloud.note(Event(method.lower(), request.urn, "begun", identity))
        phase = "refused"
        try:
            answer = getattr(objects, method)(request, context)
            phase = "done"
        finally:
            self._cloud.note(Event(method.lower(), request.urn, phase, identity))
        return answer


def server_of(kubeconfig: Path) -> str:
    """Return the address of the API server in a kubeconfig."""
    return yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]


def _release_diff(old: dict[str, Any], new: dict[str, Any]) -> Any:
    found = differences(old, new, [("name",), ("namespace",)])
    return diff_answer(found, replaces=top_level(each for each in found if each.replaces))
