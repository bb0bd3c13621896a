"""One object as written, a Pulumi resource or a Kubernetes manifest; and the pod templates of everything that creates pods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.values.verdict import ObjectIdentity
from flexspot.policies.inventory.pod_gpus import ELEMENTS, ENTRIES, GPU_PREFIXES, POD_MAKERS
from flexspot.policies.inventory.views import PodSet
from flexspot.policies.values.field import UNKNOWN, Field, Tri, list_of, mapping_of, plain
from flexspot.policies.values.finding import Secrets, secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_KUBERNETES = "kubernetes:"
_PATCH = "Patch"


@dataclass(frozen=True)
class ObjectSource:
    """The input of readers."""

    identity: ObjectIdentity
    family: str
    """API group of a Kubernetes object, empty for core; or `package:module` of a Pulumi type."""
    kind: str
    fields: Field
    """The resource's inputs. They are partial in Pulumi's `...Patch` types, which contain only a part of an object."""
    secrets: Secrets = field(default_factory=Secrets)
    """Texts in the inputs that a program marked as secret. A manifest has no such marks."""
    template: Field = field(default_factory=lambda: Field(None))
    """Fields of the launch template of a machine group; absent if none is known."""

    @property
    def seen(self) -> tuple[ObjectIdentity, Tri, bool]:
        """The first arguments of every view: the identity, `concerned`, and whether it is partial."""
        return self.identity, True, self.fields.partial

    @property
    def chart(self) -> str:
        """Name of the Helm chart of a release; empty for other objects, or if not known yet."""
        chart = self.fields.at("chart").text() if (self.family, self.kind) == ("helm.sh", "Release") else None
        return chart.rstrip("/").rpartition("/")[2] if isinstance(chart, str) else ""

    def containers(self) -> Iterator[tuple[str, Field]]:
        """Yield the containers of a workload with one pod template, each with its image, which is empty if not known."""
        for container in self.fields.at("spec", "template", "spec", "containers").parts().fields:
            image = container.at("image").text()
            yield image if isinstance(image, str) else "", container


def from_manifest(manifest: Mapping[str, Any], *, partial: bool = False) -> ObjectSource:
    """Return the source of a Kubernetes object from YAML or JSON. `partial`: it is only a part of the object."""
    return _kubernetes(plain(dict(manifest)), "", "", "", partial=partial)


def from_pulumi(type_token: str, name: str, inputs: Mapping[str, Any]) -> ObjectSource:
    """Return the source of a Pulumi resource from its type token, resource name and inputs.

    Custom objects have the token `kubernetes:<apiVersion>:<Kind>`, typed ones `kubernetes:apps/v1:Deployment`. apiVersion and kind in the
    inputs take precedence. Other clouds' tokens are `gcp:container/nodePool:NodePool`, whose family is `gcp:container`.
    """
    fields, secrets = plain(dict(inputs)), secrets_in(inputs)
    family, _, kind = type_token.rpartition(":")
    if family.startswith(_KUBERNETES):
        partial = kind.endswith(_PATCH)
        read = _kubernetes(fields, family.removeprefix(_KUBERNETES), kind.removesuffix(_PATCH), name, partial=partial)
        return replace(read, secrets=secrets)
    identity = ObjectIdentity(api_version=family, kind=kind, name=name)
    return ObjectSource(identity=identity, family=family.partition("/")[0], kind=kind, fields=Field(fields), secrets=secrets)


def _kubernetes(fields: Any, api_version: str, kind: str, name: str, *, partial: bool) -> ObjectSource:
    whole = Field(fields)
    metadata = whole.at("metadata")

    def text(default: str, holder: Field, key: str) -> str:
        found = holder.at(key).text()
        return default if found is UNKNOWN or not found else found

    api_version, kind = text(api_version, whole, "apiVersion"), text(kind, whole, "kind")
    group = api_version.rpartition("/")[0]
    identity = ObjectIdentity(
        api_version=api_version, kind=kind, name=text(name, metadata, "name"), namespace=text("", metadata, "namespace")
    )
    return ObjectSource(identity=identity, family="" if group == "core" else group, kind=kind, fields=Field(fields, partial))


def read(source: ObjectSource) -> Iterator[PodSet]:
    """Yield one view for each pod template, and for each part of an object from which its controller creates one."""
    kind = (source.family, source.kind)
    maker = POD_MAKERS.get(kind)
    for path in maker.paths if maker else _OTHER_TEMPLATES.get(kind, ()):
        for where, pod, template, holder in pod_places(source.fields, path.split(".")):
            if not pod.absent:
                yield _pods(source, where, pod, template, holder if maker and maker.makes_jobs else None)
    if kind in _DERIVED_PODS:
        for where, pod in _DERIVED_PODS[kind](source.fields):
            yield _pods(source, where, pod, Field(None, source.fields.partial))


def _pods(source: ObjectSource, where: str, pod: Field, template: Field, job: Field | None = None) -> PodSet:
    metadata, maker = source.fields.at("metadata"), POD_MAKERS.get((source.family, source.kind))
    queued = source.fields.at(*maker.queued_as) if maker else metadata
    return PodSet(
        identity=source.identity,
        concerned=True,
        partial=source.fields.partial,
        where=where,
        kind=source.kind,
        namespace=metadata.at("namespace"),
        pod=pod,
        labels=metadata.at("labels"),
        template_labels=template.at("metadata", "labels"),
        queue_labels=queued.at("labels"),
        job=job,
        object_spec=source.fields.at("spec"),
        annotations=tuple(each.at("annotations") for each in (metadata, queued, template.at("metadata"))),
    )


def annotations_of(source: ObjectSource) -> Iterator[Field]:
    """Yield the annotations of the object and of its pod templates."""
    yield source.fields.at("metadata", "annotations")
    maker = POD_MAKERS.get((source.family, source.kind))
    for path in maker.paths if maker else ():
        for _, _, template, _ in pod_places(source.fields, path.split(".")):
            if template != source.fields:
                yield template.at("metadata", "annotations")


def _joined(walked: str, path: list[str]) -> str:
    return ".".join(step for step in (walked, *path) if step)


def pod_places(field: Field, path: list[str], walked: str = "") -> Iterator[tuple[str, Field, Field, Field]]:
    """Yield path and spec of each pod template below a path, the template itself, and its parent: in a Job its spec."""
    star = next((place for place, step in enumerate(path) if step in {ELEMENTS, ENTRIES}), None)
    if star is None:
        yield _joined(walked, path), field.at(*path), field.at(*path[:-1]), field.at(*path[:-2])
        return
    listed = _joined(walked, path[:star])
    members = field.at(*path[:star])
    if not members.known:
        yield listed, members, members, members
    for key, member in members.parts().named:
        yield from pod_places(member, path[star + 1 :], f"{listed}[{key}]")


_OTHER_TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("argoproj.io", "Rollout"): ("spec.template.spec",),
    ("batch.volcano.sh", "Job"): (f"spec.tasks.{ELEMENTS}.template.spec",),
    ("serving.knative.dev", "Service"): ("spec.template.spec",),
    ("serving.kserve.io", "LLMInferenceService"): ("spec.template",),
    **{
        ("kubeflow.org", kind): (f"spec.{field}ReplicaSpecs.{ENTRIES}.template.spec",)
        for kind, field in {"JAXJob": "jax", "MPIJob": "mpi", "PaddleJob": "paddle", "TFJob": "tf", "XGBoostJob": "xgb"}.items()
    },
}
"""Paths to whole templates in kinds that the platform does not accept, but other repositories contain.

Argo Rollouts 1.8, Volcano 1.12, Knative 1.19, KServe 0.16, Kubeflow's training operator 1.9.
"""


_OF_PODS: Final = ("nodeSelector", "tolerations", "affinity", "volumes", "priorityClassName", "terminationGracePeriodSeconds")


def _inference_service(whole: Field) -> Iterator[tuple[str, Field]]:
    """Yield the pods of an InferenceService.

    A part is itself a pod's spec; `model`, or before it the name of a framework, is one more container.
    """
    for part in ("predictor", "transformer", "explainer"):
        pod = mapping_of(whole.at("spec", part).value)
        frameworks = ("model", "pytorch", "triton", "tensorflow", "huggingface", "onnx", "sklearn", "xgboost", "lightgbm", "pmml")
        models = [{"name": name, **pod[name]} for name in frameworks if isinstance(pod.get(name), dict)]
        listed = pod.get("containers")
        if pod:
            containers = [*list_of(listed), *models]
            yield f"spec.{part}", Field({**pod, "containers": containers}, whole.partial)


def _train_job(whole: Field) -> Iterator[tuple[str, Field]]:
    """Yield the pods of a TrainJob. Its fields are merged into its runtime's template, of which no more is known here."""
    trainer = mapping_of(whole.at("spec", "trainer").value)
    container = {"name": "node", **{key: trainer[key] for key in ("image", "command", "args", "env") if key in trainer}}
    container["resources"] = trainer.get("resourcesPerNode")
    pod: dict[str, Any] = {}
    for override in whole.at("spec", "podTemplateOverrides").parts().fields:
        pod |= {key: value for key, value in mapping_of(override.at("spec").value).items() if key in _OF_PODS}
    if trainer:
        yield "spec.trainer", Field({**pod, "containers": [container]}, partial=True)


def _workflow(whole: Field) -> Iterator[tuple[str, Field]]:
    spec, path = whole.at("spec"), "spec"
    if not whole.at("spec", "workflowSpec").absent:
        spec, path = whole.at("spec", "workflowSpec"), "spec.workflowSpec"
    common = {key: value for key, value in mapping_of(spec.value).items() if key in _OF_PODS}
    for place, template in spec.at("templates").parts().named:
        own = {key: value for key, value in mapping_of(template.value).items() if key in _OF_PODS}
        single = [each for name in ("container", "script") if (each := mapping_of(template.at(name).value))]
        several = [mapping_of(each.value) for each in template.at("containerSet", "containers").parts().fields]
        if single or several:
            containers = [{"name": "main", **each} for each in single] or several
            yield f"{path}.templates[{place}]", Field({**common, **own, "containers": containers}, whole.partial)


_DERIVED_PODS: Final[Mapping[tuple[str, str], Callable[[Field], Iterator[tuple[str, Field]]]]] = {
    ("serving.kserve.io", "InferenceService"): _inference_service,
    ("trainer.kubeflow.org", "TrainJob"): _train_job,
    **{("argoproj.io", kind): _workflow for kind in ("ClusterWorkflowTemplate", "CronWorkflow", "Workflow", "WorkflowTemplate")},
}
"""Functions that derive pods from an object without a template. KServe 0.16, Kubeflow Trainer 2.1, Argo Workflows 3.7."""


_VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("helm.sh", "Release"): "values",
    ("helm.sh", "Chart"): "values",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
}
"""Paths to the values: Pulumi's helm.v3.Release and Charts, and Flux's release."""

_SIBLINGS: Final = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName", "terminationGracePeriodSeconds")

_DEPTH: Final = 12
"""Levels of values that are searched. Charts of charts have four or five."""


def read_releases(source: ObjectSource) -> Iterator[PodSet]:
    """Yield one view for each part of the values that has `resources` with GPUs, with the pod fields next to it.

    Charts use Kubernetes' names for these fields. The chart's defaults may add more, so the pod is partial.
    """
    path = _VALUES.get((source.family, source.kind))
    if path is None:
        return
    for where, part in _with_gpus(source.fields.at(*path.split(".")).value, path, _DEPTH):
        pod = {name: part[name] for name in _SIBLINGS if name in part}
        container: dict[str, Any] = {"name": where.rpartition(".")[2], "resources": part["resources"]}
        unsaid = Field(UNKNOWN, partial=True)
        yield _pods(replace(source, fields=unsaid), where, Field({**pod, "containers": [container]}, partial=True), unsaid)


def _with_gpus(value: Any, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if depth == 0:
        return
    if isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _with_gpus(each, f"{where}[{place}]", depth - 1)
    elif isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        if _asks(part.get("resources")):
            yield where, part
        for key, each in part.items():
            yield from _with_gpus(each, f"{where}.{key}", depth - 1)


def _asks(resources: Any) -> bool:
    if not isinstance(resources, dict):
        return False
    amounts = (cast("dict[str, Any]", resources).get(name) for name in ("limits", "requests"))
    return any(str(key).startswith(GPU_PREFIXES) for each in amounts if isinstance(each, dict) for key in cast("dict[Any, Any]", each))
