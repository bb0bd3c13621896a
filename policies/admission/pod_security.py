"""Pod Security `restricted`, in CEL, for the pods that work would make.

The namespace refuses such pods one by one, and by then their work has its quota. Source: Kubernetes 1.35,
https://kubernetes.io/docs/concepts/security/pod-security-standards/. A real API server is asked of the same pods in tests.
"""

from __future__ import annotations

from policies.admission.cel import either, every, list_at, mapping_at, optional, text_at, texts
from policies.admission.pods import ALL_CONTAINERS

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
    """A condition of a security context, `s`, that neither the pod's nor a container's may have."""
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
"""What the namespace takes no pod with, in words, and CEL for whether `p` has it."""
