"""Rules about pods of a team: nodes, devices and places that belong to others, and pods that would never start.

A namespace refuses pods that violate Pod Security `restricted` one by one, when their work already has its quota. Source: Kubernetes 1.35,
https://kubernetes.io/docs/concepts/security/pod-security-standards/. Tests compare the verdicts with a real API server.
"""

from __future__ import annotations

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.workloads.inputs import VISIBLE_DEVICES
from flexspot.policies.admission.cel import MOST_PLACES, either, every, list_at, mapping_at, optional, text, text_at, texts
from flexspot.policies.admission.form import (
    POD_SETS,
    Boundary,
    Guarantee,
    boundary,
    of_pods,
    problem_if,
)
from flexspot.policies.admission.pods import ALL_CONTAINERS, ASKS
from flexspot.policies.inventory.pod_gpus import ELEMENTS, POD_MAKERS
from flexspot.policies.rules.interruptions import grace_exceeds_notice

_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret")
_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_CONFINED = ("RuntimeDefault", "Localhost")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = (("lifecycle", "postStart"), ("lifecycle", "preStop"))

_POD, _CONTAINER = ("p.pod", "securityContext"), ("c", "securityContext")


def _flag(base: str, *steps: str, default: str = "false") -> str:
    return f"{optional(base, *steps)}.orValue({default})"


def _some(condition: str) -> str:
    return f"{ALL_CONTAINERS}.exists(c, {condition})"


def _all(condition: str) -> str:
    return f"{ALL_CONTAINERS}.all(c, {condition})"


def _either_level(condition: str) -> str:
    """Return CEL for a condition of a security context, written as SC, that neither the pod nor a container may meet."""
    return either(condition.replace("SC", ".?".join(_POD)), _some(condition.replace("SC", ".?".join(_CONTAINER))))


def _profile(field: str) -> str:
    return f"SC.?{field}.?type.orValue('')"


_SELINUX = "SC.?seLinuxOptions"
_HOSTS = (
    *((probe, kind) for probe in _PROBES for kind in ("httpGet", "tcpSocket")),
    *((*hook, kind) for hook in _HOOKS for kind in ("httpGet", "tcpSocket")),
)

VIOLATIONS = {
    "hostNetwork, hostPID and hostIPC": either(*(_flag("p.pod", each) for each in ("hostNetwork", "hostPID", "hostIPC"))),
    "privileged containers": _some(_flag(*_CONTAINER, "privileged")),
    "Windows' host processes": _either_level("SC.?windowsOptions.?hostProcess.orValue(false)"),
    "ports of the node (hostPort)": _some(f"{list_at('c', 'ports')}.exists(o, int({_flag('o', 'hostPort', default='0')}) != 0)"),
    "probes and hooks of another host": _some(either(*(f"{text_at('c', *path, 'host')} != ''" for path in _HOSTS))),
    "volumes of other kinds than " + ", ".join(_VOLUMES): (
        f"{list_at('p.pod', 'volumes')}.exists(v, !v.all(k, k == 'name') && !v.exists(k, k in {texts(_VOLUMES)}))"
    ),
    "sysctls that are not safe": f"{list_at(*_POD, 'sysctls')}.exists(y, !({text_at('y', 'name')} in {texts(_SYSCTLS)}))",
    "an unmasked /proc (procMount)": _some(f"!({text_at(*_CONTAINER, 'procMount')} in ['', 'Default'])"),
    "seLinuxOptions of one's own": _either_level(
        either(
            f"!({_SELINUX}.?type.orValue('') in {texts(_SELINUX_TYPES)})",
            f"{_SELINUX}.?user.orValue('') != ''",
            f"{_SELINUX}.?role.orValue('') != ''",
        )
    ),
    "an AppArmor profile that confines nothing": either(
        _either_level(f"{_profile('appArmorProfile')} == 'Unconfined'"),
        f"{mapping_at('p.template', 'metadata', 'annotations')}.exists(k, k.startsWith('container.apparmor.security.beta.kubernetes.io/')"
        " && p.template.metadata.annotations[k] != '' && p.template.metadata.annotations[k] != 'runtime/default'"
        " && !p.template.metadata.annotations[k].startsWith('localhost/'))",
    ),
    "a seccomp profile that is missing or confines nothing (write securityContext.seccompProfile.type: RuntimeDefault)": either(
        _either_level(f"!({_profile('seccompProfile')} in {texts(('', *_CONFINED))})"),
        every(
            f"!({_profile('seccompProfile').replace('SC', '.?'.join(_POD))} in {texts(_CONFINED)})",
            f"!{_all(_profile('seccompProfile').replace('SC', '.?'.join(_CONTAINER)) + f' in {texts(_CONFINED)}')}",
        ),
    ),
    "capabilities (write capabilities.drop: [ALL], and add none but NET_BIND_SERVICE)": "!"
    + _all(
        every(
            f"'ALL' in {list_at(*_CONTAINER, 'capabilities', 'drop')}",
            f"{list_at(*_CONTAINER, 'capabilities', 'add')}.all(a, a == 'NET_BIND_SERVICE')",
        )
    ),
    "more privileges than at the start (write allowPrivilegeEscalation: false for each container)": (
        f"!{_all('!' + _flag(*_CONTAINER, 'allowPrivilegeEscalation', default='true'))}"
    ),
    "the user root (write securityContext.runAsNonRoot: true, and no runAsUser: 0)": either(
        _either_level("int(SC.?runAsUser.orValue(1)) == 0"),
        _either_level("!SC.?runAsNonRoot.orValue(true)"),
        f"!{_all(_flag(*_CONTAINER, 'runAsNonRoot', default=_flag(*_POD, 'runAsNonRoot')))}",
    ),
}
"""Pod Security violations that the namespace rejects, as (description, CEL test of `p`)."""


LONGEST_NOTICE_SECONDS = grace_exceeds_notice.defaults().number("longest-seconds")
"""The longest notice of a Spot interruption. A grace period up to it is allowed everywhere."""


_MANAGERS = ("", "kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller")
_SCHEDULER = text_at("p.pod", "schedulerName")
PLACED = boundary(
    "placed-by-hand",
    "the platform's own scheduler and controllers place and run the work",
    of_pods(f"{text_at('p.pod', 'nodeName')} != ''", "{where}.nodeName places pods on a node, whoever owns it", "leave it out"),
    of_pods(
        f"!({_SCHEDULER} in ['', 'default-scheduler'])",
        "{where}.schedulerName is {name}, which does not run here or knows no taints",
        "leave it out",
        name=_SCHEDULER,
    ),
    of_pods(
        f"size({list_at('p.pod', 'schedulingGates')}) > 0",
        "{where}.schedulingGates keeps pods from starting while they hold quota",
        "leave it out",
    ),
    of_pods(
        f"size({list_at('p.pod', 'resourceClaims')}) > 0",
        "{where}.resourceClaims requests devices that no queue counts",
        f"request {' or '.join(RESOURCES)}",
    ),
    problem_if(
        f"object.kind == 'JobSet' && !({text_at('object', 'spec', 'managedBy')} in {texts(_MANAGERS)})",
        "spec.managedBy is {name}, and nothing here runs it: it would hold its quota and never start",
        "leave it out",
        name=text_at("object", "spec", "managedBy"),
    ),
    of_pods(
        f"{text_at('p', 'job', 'managedBy')} != '' && !({text_at('p', 'job', 'managedBy')} in {texts(_MANAGERS)})",
        "{where}: its Job's managedBy names what does not run here: it would never start",
        "leave it out",
    ),
    problem_if("object.kind == 'DaemonSet'", "a DaemonSet is on every node, outside of every queue", "use a Job or a Deployment"),
)

SYSTEM_TAINTS = ("CriticalAddonsOnly", "flexspot.dev/system", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Taints of the platform's own nodes."""

_DEVICES = ("nvidia.com/", *RESOURCES)
"""Prefixes of the keys of taints on nodes with accelerators."""

_TOLERATED = list_at("p.pod", "tolerations")
_TOLERATION_KEY = text_at("t", "key")
TOLERATIONS = boundary(
    "tolerates-too-much",
    "pods tolerate only the taints of nodes for their kind of work",
    of_pods(
        f"{_TOLERATED}.exists(t, {_TOLERATION_KEY} == '')",
        "{where}.tolerations has one without a key: it tolerates every taint",
        "name the taint's key",
    ),
    of_pods(
        f"{_TOLERATED}.exists(t, {_TOLERATION_KEY} in {texts(SYSTEM_TAINTS)})",
        "{where}.tolerations leads to the nodes of the platform's own controllers",
        "remove it",
    ),
    of_pods(
        every(
            f"!({ASKS})",
            f"{_TOLERATED}.exists(t, {either(*(f'{_TOLERATION_KEY}.startsWith({text(each)})' for each in _DEVICES))})",
            # If only some pods of a set have GPUs, Kueue may have added a flavor's tolerations to the others.
            f"request.operation != 'UPDATE' || !{POD_SETS}.exists(q, {ASKS.replace('p.pod', 'q.pod')})",
        ),
        "{where}.tolerations leads to GPU nodes, and no container has a limit on " + " or ".join(RESOURCES),
        "remove the toleration, or request GPUs",
    ),
)

_SHOWN = f"{text_at('e', 'name')} == {text(VISIBLE_DEVICES)} && !({text_at('e', 'value')} in ['none', 'void'] && !e.?valueFrom.hasValue())"
_SEEING = f"{ALL_CONTAINERS}.filter(c, {list_at('c', 'env')}.exists(e, {_SHOWN}))"
# Contents of Secrets and ConfigMaps, which teams write, are not visible here. A variable that the container itself sets has priority.
_COULD_SET = f"{list_at('c', 'envFrom')}.exists(s, {text(VISIBLE_DEVICES)}.startsWith({text_at('s', 'prefix')}))"
_SETS = f"{list_at('c', 'env')}.exists(e, {text_at('e', 'name')} == {text(VISIBLE_DEVICES)})"
_PERHAPS = f"{ALL_CONTAINERS}.filter(c, {_COULD_SET} && !{_SETS})"
DEVICES = boundary(
    "sees-gpus-of-others",
    "containers see the GPUs that they are given",
    of_pods(
        f"size({_PERHAPS}) > 0 && {POD_SETS}.exists(q, {ASKS.replace('p.pod', 'q.pod')})",
        "{where}: container {name} takes all of a Secret or a ConfigMap into its environment, "
        + VISIBLE_DEVICES
        + " too, which shows it GPUs of others on its node",
        "give envFrom a prefix such as APP_, or name each variable with valueFrom",
        name=text_at(f"{_PERHAPS}[0]", "name"),
    ),
    of_pods(
        f"size({_SEEING}) > 0",
        "{where}: container {name} sets " + VISIBLE_DEVICES + ", which shows it GPUs of others on its node",
        "remove it: a container sees the GPUs that it requests",
        name=text_at(f"{_SEEING}[0]", "name"),
    ),
)


_FOUND = ", ".join(f"({condition}) ? {text(words)} : ''" for words, condition in VIOLATIONS.items())
_VIOLATED = f"[{_FOUND}].filter(w, w != '')"
POD_SECURITY = boundary(
    "pods-that-never-start",
    "work creates pods that the namespace accepts",
    of_pods(
        f"object.kind != 'Pod' && size({_VIOLATED}) > 0",
        "{where}: the namespace rejects pods with {found}: the work would hold its quota and never start",
        "meet the requirements of Pod Security restricted",
        found=f"{_VIOLATED}.join('; ')",
    ),
)

_LISTED = [
    list_at("object", *path.split(f".{ELEMENTS}")[0].split("."))
    for path in dict.fromkeys(path for maker in POD_MAKERS.values() for path in maker.paths if ELEMENTS in path)
]
SIZE = boundary(
    "more-than-is-looked-at",
    f"rules look at {MOST_PLACES} parts of a kind",
    of_pods(
        f"size({ALL_CONTAINERS}) > {MOST_PLACES}",
        f"{{where}} has {{count}} containers, of which rules would look at {MOST_PLACES}",
        f"use {MOST_PLACES} or fewer",
        count=f"size({ALL_CONTAINERS})",
    ),
    problem_if(
        either(*(f"size({each}) > {MOST_PLACES}" for each in _LISTED)),
        f"it has more than {MOST_PLACES} groups of pods, of which rules would look at {MOST_PLACES}",
        f"use {MOST_PLACES} or fewer",
    ),
)


def grace_of_pods(guarantee: Guarantee) -> Boundary:
    """Return the rule that pods with GPUs end within the platform's longest grace period."""
    written = f"int({optional('p.pod', 'terminationGracePeriodSeconds')}.orValue(0))"
    most = guarantee.longest_grace
    return boundary(
        "grace-beyond-the-platforms",
        "GPUs come back within the longest grace period",
        of_pods(
            f"({ASKS}) && {written} > {most}",
            f"{{where}}.terminationGracePeriodSeconds is {{grace}}; the longest here is {most}, because other work waits for the GPUs",
            f"use {most} or less",
            grace=written,
        ),
    )
