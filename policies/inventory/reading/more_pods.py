"""Pods of kinds that no cluster of the platform takes and that other people's repositories have: training, serving and workflows.

And of releases of charts what their values say of pods that ask for GPUs; the chart itself is not rendered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from policies.inventory.pod_gpus import ELEMENTS, ENTRIES, GPU_PREFIXES
from policies.inventory.reading.source import pod_places
from policies.inventory.views import PodSet
from policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from policies.inventory.reading.source import Source


_TEMPLATES: Final[Mapping[tuple[str, str], str]] = {
    ("argoproj.io", "Rollout"): "spec.template.spec",
    ("batch.volcano.sh", "Job"): f"spec.tasks.{ELEMENTS}.template.spec",
    ("serving.knative.dev", "Service"): "spec.template.spec",
    ("serving.kserve.io", "LLMInferenceService"): "spec.template",
    **{
        ("kubeflow.org", kind): f"spec.{field}ReplicaSpecs.{ENTRIES}.template.spec"
        for kind, field in {"JAXJob": "jax", "MPIJob": "mpi", "PaddleJob": "paddle", "TFJob": "tf", "XGBoostJob": "xgb"}.items()
    },
}
"""Where a kind keeps whole templates. Argo Rollouts 1.8, Volcano 1.12, Knative 1.19, KServe 0.16, Kubeflow's training operator 1.9."""


def read(source: Source) -> Iterator[PodSet]:
    """One view for each template, and for each part of an object of which its controller makes one."""
    kind = (source.family, source.kind)
    if kind in _TEMPLATES:
        for where, pod, template, _ in pod_places(source.fields, _TEMPLATES[kind].split(".")):
            if not pod.absent:
                yield _pods(source, where, pod, template)
    elif kind in _MADE:
        for where, pod in _MADE[kind](source.fields):
            yield _pods(source, where, pod, Field(None, source.fields.partial))


def _pods(source: Source, where: str, pod: Field, template: Field) -> PodSet:
    metadata = source.fields.at("metadata")
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
        queue_labels=metadata.at("labels"),
        job=None,
        object_spec=source.fields.at("spec"),
        annotations=(metadata.at("annotations"), template.at("metadata", "annotations")),
    )


def _mapping(field: Field) -> dict[str, Any]:
    return cast("dict[str, Any]", field.value) if isinstance(field.value, dict) else {}


_OF_PODS: Final = ("nodeSelector", "tolerations", "affinity", "volumes", "priorityClassName", "terminationGracePeriodSeconds")


def _inference_service(whole: Field) -> Iterator[tuple[str, Field]]:
    """A part is a pod's spec itself; `model`, or before it the name of a framework, is one more container."""
    for part in ("predictor", "transformer", "explainer"):
        pod = _mapping(whole.at("spec", part))
        frameworks = ("model", "pytorch", "triton", "tensorflow", "huggingface", "onnx", "sklearn", "xgboost", "lightgbm", "pmml")
        models = [{"name": name, **cast("dict[str, Any]", pod[name])} for name in frameworks if isinstance(pod.get(name), dict)]
        listed = pod.get("containers")
        if pod:
            containers = [*(cast("list[Any]", listed) if isinstance(listed, list) else []), *models]
            yield f"spec.{part}", Field({**pod, "containers": containers}, whole.partial)


def _train_job(whole: Field) -> Iterator[tuple[str, Field]]:
    """What a TrainJob says of its nodes goes into the template of its runtime, of which nothing more is known here."""
    trainer = _mapping(whole.at("spec", "trainer"))
    container = {"name": "node", **{key: trainer[key] for key in ("image", "command", "args", "env") if key in trainer}}
    container["resources"] = trainer.get("resourcesPerNode")
    pod: dict[str, Any] = {}
    for override in whole.at("spec", "podTemplateOverrides").parts().fields:
        pod |= {key: value for key, value in _mapping(override.at("spec")).items() if key in _OF_PODS}
    if trainer:
        yield "spec.trainer", Field({**pod, "containers": [container]}, partial=True)


def _workflow(whole: Field) -> Iterator[tuple[str, Field]]:
    spec, path = whole.at("spec"), "spec"
    if not whole.at("spec", "workflowSpec").absent:
        spec, path = whole.at("spec", "workflowSpec"), "spec.workflowSpec"
    common = {key: value for key, value in _mapping(spec).items() if key in _OF_PODS}
    for place, template in spec.at("templates").parts().named:
        own = {key: value for key, value in _mapping(template).items() if key in _OF_PODS}
        single = [each for name in ("container", "script") if (each := _mapping(template.at(name)))]
        several = [_mapping(each) for each in template.at("containerSet", "containers").parts().fields]
        if single or several:
            containers = [{"name": "main", **each} for each in single] or several
            yield f"{path}.templates[{place}]", Field({**common, **own, "containers": containers}, whole.partial)


_MADE: Final[Mapping[tuple[str, str], Callable[[Field], Iterator[tuple[str, Field]]]]] = {
    ("serving.kserve.io", "InferenceService"): _inference_service,
    ("trainer.kubeflow.org", "TrainJob"): _train_job,
    **{("argoproj.io", kind): _workflow for kind in ("ClusterWorkflowTemplate", "CronWorkflow", "Workflow", "WorkflowTemplate")},
}
"""How pods follow from an object that holds no template. KServe 0.16, Kubeflow Trainer 2.1, Argo Workflows 3.7."""


_VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("helm.sh", "Release"): "values",
    ("helm.sh", "Chart"): "values",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
}
"""Where the values stand: Pulumi's helm.v3.Release and Charts, and Flux's release."""

_BESIDE: Final = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName", "terminationGracePeriodSeconds")

_DEPTH: Final = 12
"""How deep values are looked into; charts of charts have four or five."""


def read_releases(source: Source) -> Iterator[PodSet]:
    """One view for each part of the values that has `resources` with GPUs, with what stands beside them of pods.

    Charts take these names for what Kubernetes calls so. What a part does not say, the chart's defaults do: it is a part of a pod.
    """
    path = _VALUES.get((source.family, source.kind))
    if path is None:
        return
    for where, part in _with_gpus(source.fields.at(*path.split(".")).value, path, _DEPTH):
        pod = {name: part[name] for name in _BESIDE if name in part}
        container: dict[str, Any] = {"name": where.rpartition(".")[2], "resources": part["resources"]}
        unsaid = Field(UNKNOWN, partial=True)
        yield PodSet(
            identity=source.identity,
            concerned=True,
            partial=True,
            where=where,
            kind=source.kind,
            namespace=unsaid,
            pod=Field({**pod, "containers": [container]}, partial=True),
            labels=unsaid,
            template_labels=unsaid,
            queue_labels=unsaid,
            job=None,
            object_spec=unsaid,
            annotations=(),
        )


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
