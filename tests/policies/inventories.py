"""Generated runs for the rules that compare objects: pools, queues, flavors and pods that may or may not match. Not a test."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from rule_fixtures import UNKNOWN_STRING

Resource = tuple[str, str, dict[str, Any]]
"""Type token, name and inputs."""

KUEUE = "kueue.x-k8s.io/v1beta2"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

names = st.sampled_from(["a", "b", "c"])
spaces = st.sampled_from(["research", "serving"])
gpus = st.sampled_from(["1", 2, "8"])
LABELS = {
    "karpenter.sh/nodepool": st.sampled_from(["a", "b", "c", "elsewhere"]),
    "cloud.google.com/gke-nodepool": st.sampled_from(["a", "b", "c"]),
    "cloud.google.com/gke-spot": st.just("true"),
    "karpenter.sh/capacity-type": st.sampled_from(["spot", "on-demand"]),
    "node.kubernetes.io/instance-type": st.sampled_from(["g6.xlarge", "p5.48xlarge", "g2-standard-8"]),
    "karpenter.k8s.aws/instance-gpu-name": st.sampled_from(["l4", "h100"]),
    "eks.amazonaws.com/instance-family": st.sampled_from(["g6", "p5"]),
    "flexspot.dev/tier": st.sampled_from(["gold", "silver"]),
    "nvidia.com/gpu.product": st.just("NVIDIA-L4"),
}


def or_unknown(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy that draws the value, or one time in nine the engine's mark of an unknown value."""
    return st.sampled_from([False] * 8 + [True]).flatmap(lambda late: st.just(UNKNOWN_STRING) if late else strategy)


@st.composite
def labels(draw: st.DrawFn, most: int = 2) -> Any:
    keys = draw(st.lists(st.sampled_from(sorted(LABELS)), max_size=most, unique=True))
    return draw(or_unknown(st.fixed_dictionaries({key: or_unknown(LABELS[key]) for key in keys})))


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(LABELS)))
    operator = draw(or_unknown(st.sampled_from(["In", "In", "In", "NotIn", "Exists", "DoesNotExist"])))
    return {"key": draw(or_unknown(st.just(key))), "operator": operator, "values": draw(or_unknown(st.lists(LABELS[key], max_size=2)))}


TAINT_KEYS = ["nvidia.com/gpu", "flexspot.dev/capacity-type", "team-a", "cloud.google.com/gke-queued"]
taints = or_unknown(
    st.lists(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(TAINT_KEYS),
                "value": or_unknown(st.sampled_from(["spot", "present"])),
                "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule"]),
            }
        ),
        max_size=2,
    )
)
tolerations = or_unknown(
    st.lists(
        st.fixed_dictionaries(
            {"operator": or_unknown(st.sampled_from(["Exists", "Equal"]))},
            optional={"key": st.sampled_from(TAINT_KEYS), "value": st.just("spot"), "effect": st.just("NoSchedule")},
        ),
        max_size=2,
    )
)


def written(api_version: str, kind: str, name: str, body: dict[str, Any], namespace: str = "") -> Resource:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    token = f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"
    return token, f"{kind}-{namespace}-{name}", {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


@st.composite
def now_and_then_a_patch(draw: st.DrawFn, whole: Resource) -> Resource:
    """Return the object, or one time in six a patch with the same content."""
    token, name, inputs = whole
    return f"{token}{draw(st.sampled_from([''] * 5 + ['Patch']))}", name, inputs


@st.composite
def karpenter_pools(draw: st.DrawFn) -> Resource:
    requirements = draw(or_unknown(st.lists(expressions(), max_size=3)))
    node = {"requirements": requirements, "taints": draw(taints), "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}}
    node["nodeClassRef"]["name"] = draw(or_unknown(names))
    template = {"metadata": {"labels": draw(labels())}, "spec": node}
    spec = {"limits": {"nvidia.com/gpu": draw(or_unknown(gpus))}, "template": template}
    return draw(now_and_then_a_patch(written("karpenter.sh/v1", "NodePool", draw(names), {"spec": draw(or_unknown(st.just(spec)))})))


@st.composite
def gke_pools(draw: st.DrawFn) -> Resource:
    node = {"machineType": draw(or_unknown(st.just("g2-standard-8"))), "labels": draw(labels()), "taints": draw(taints)}
    if draw(st.booleans()):
        node["spot"] = draw(or_unknown(st.booleans()))
    if draw(st.booleans()):
        node["guestAccelerators"] = [{"type": draw(st.sampled_from(["nvidia-l4", "nvidia-tesla-t4"])), "count": draw(st.integers(0, 2))}]
    name = draw(names)
    inputs = {"name": draw(or_unknown(st.just(name))), "nodeConfig": node, "autoscaling": {"totalMaxNodeCount": draw(st.integers(0, 4))}}
    return "gcp:container/nodePool:NodePool", name, inputs


@st.composite
def flavors(draw: st.DrawFn) -> Resource:
    spec = {"nodeLabels": draw(labels()), "tolerations": draw(tolerations), "nodeTaints": draw(taints)}
    return written(KUEUE, "ResourceFlavor", draw(names), {"spec": spec})


@st.composite
def queues(draw: st.DrawFn) -> list[Resource]:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": draw(or_unknown(gpus))}]
    listed = [{"name": draw(or_unknown(names)), "resources": quota} for _ in range(draw(st.integers(0, 2)))]
    group: dict[str, Any] = {"coveredResources": ["nvidia.com/gpu"], "flavors": listed}
    cluster, local = draw(names), draw(st.sampled_from(["default", "gpus"]))
    return [
        written(KUEUE, "ClusterQueue", cluster, {"spec": {"namespaceSelector": {}, "resourceGroups": [group]}}),
        written(KUEUE, "LocalQueue", local, {"spec": {"clusterQueue": draw(or_unknown(st.just(cluster)))}}, draw(spaces)),
    ]


@st.composite
def jobs(draw: st.DrawFn) -> Resource:
    pod: dict[str, Any] = {
        "containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": draw(or_unknown(st.just(1)))}}}],
        "terminationGracePeriodSeconds": draw(or_unknown(st.sampled_from([10, 60, 300]))),
    }
    if draw(st.booleans()):
        pod["nodeSelector"] = draw(labels())
    if draw(st.booleans()):
        pod["tolerations"] = draw(tolerations)
    if draw(st.booleans()):
        terms = st.lists(st.fixed_dictionaries({"matchExpressions": or_unknown(st.lists(expressions(), max_size=2))}), max_size=2)
        pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": draw(or_unknown(terms))}}}
    name, space = draw(names), draw(or_unknown(spaces))
    body = {"spec": {"backoffLimit": draw(st.integers(0, 8)), "template": {"spec": pod}}}
    token, full, inputs = draw(now_and_then_a_patch(written("batch/v1", "Job", name, body, space)))
    if draw(st.booleans()):
        inputs["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": draw(or_unknown(st.just("gpus")))}
    return token, full, inputs


@st.composite
def others(draw: st.DrawFn) -> Resource:
    found = draw(st.sampled_from(["Namespace", "EC2NodeClass", "Cluster"]))
    if found == "Cluster":
        return "gcp:container/cluster:Cluster", "dev", {"removeDefaultNodePool": True, "clusterAutoscaling": {"enabled": True}}
    if found == "Namespace":
        token, name, inputs = written("v1", "Namespace", draw(spaces), {})
        inputs["metadata"]["labels"] = draw(or_unknown(st.sampled_from([{}, {"team": "research"}])))
        return token, name, inputs
    return written("karpenter.k8s.aws/v1", "EC2NodeClass", draw(names), {"spec": {}})


@st.composite
def runs(draw: st.DrawFn) -> list[Resource]:
    """Return the resources of one run in any order: a few of each kind, some with the same name."""
    made: list[Resource] = [
        *draw(st.lists(st.one_of(karpenter_pools(), gke_pools()), max_size=5)),
        *draw(st.lists(flavors(), max_size=3)),
        *(each for pair in draw(st.lists(queues(), max_size=2)) for each in pair),
        *draw(st.lists(jobs(), max_size=5)),
        *draw(st.lists(others(), max_size=3)),
    ]
    return draw(st.permutations(made))
