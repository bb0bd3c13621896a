"""What the Kubernetes provider does before anything is changed: names and defaults (Check), and differences (Diff)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.providers.api import Refusal, UnservedKindError
from lab.providers.diffing import Change, Difference, differences, not_ignored, same, value_at
from lab.providers.failures import ProviderError
from lab.providers.immutable import replacing_fields
from lab.providers.naming import autonamed, with_old_autoname
from lab.providers.objects import (
    AUTONAMED,
    REPLACE_UNREADY,
    is_named,
    is_true,
    kind_of,
    metadata,
    name_of,
    namespace_of,
    pruned,
    resource_name,
    type_of,
    with_string_data,
    without_read_only,
)
from lab.providers.readiness import rule_for
from lab.providers.state import field_manager, live_part, with_secrets
from lab.providers.values import Properties, has_unknown, hyphenated, plain, underscored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.cluster import KubeObject
    from lab.providers.api import LabApi
    from lab.providers.settings import Settings


@dataclass(frozen=True)
class Verdict:
    """The answer to Diff. `replaces` are the properties for which the object must be made anew."""

    found: list[Difference]
    replaces: list[str]
    delete_before_replace: bool


def require_offered(urn: str) -> None:
    """Raises ProviderError for the resource types that the stand-in does not do."""
    token = type_of(urn)
    if token == "kubernetes:helm.sh/v3:Release":  # noqa: S105 -- a type token
        raise ProviderError(
            f"{token} is not offered by the stand-in Kubernetes provider: the lab has no charts and no images. Declare the chart only "
            "for clouds, and its objects, or a substitute for them, for `cloud: local`."
        )
    if not _is_built_in(token.split(":")[1]):
        return
    if token.endswith("Patch"):
        raise ProviderError(f"{token} is not offered by the stand-in Kubernetes provider; declare the whole object instead.")
    if token.endswith("List"):
        raise ProviderError(f"{token} cannot be created: lists are for manifests. Declare each object of it by itself.")


def is_namespaced(api: LabApi, each: KubeObject) -> bool:
    """Whether objects of this kind are in namespaces; yes when the kind is not served yet, as the real provider assumes."""
    try:
        return api.resource(each["apiVersion"], each["kind"]).namespaced
    except UnservedKindError:
        return True


def check(  # noqa: PLR0913 -- what the engine asks with
    api: LabApi, settings: Settings, urn: str, olds: Properties, news: Properties, *, seed: bytes, wish: Any = None
) -> Properties:
    """The inputs that all later steps work with: the program's, named and put into a namespace."""
    require_offered(urn)
    inputs: KubeObject = without_read_only(hyphenated(plain(news)))
    inputs["apiVersion"], inputs["kind"] = kind_of(urn, inputs)
    old: KubeObject = hyphenated(plain(olds))
    inputs = with_old_autoname(inputs, old) if old else autonamed(inputs, resource_name(urn), seed, wish)
    if settings.namespace and not metadata(inputs).get("namespace") and is_namespaced(api, inputs):
        inputs["metadata"] = {**metadata(inputs), "namespace": settings.namespace}
    return with_secrets(underscored(inputs), news)


def diff(  # noqa: PLR0913 -- what the engine asks with
    api: LabApi, settings: Settings, *, state: Properties, old_inputs: Properties, news: Properties, ignored: Sequence[str]
) -> Verdict:
    """What an update would change.

    Compared are the new inputs with the object in the state, cut to what the program set before; so drift is seen after a
    refresh. What only is written otherwise than the API server writes it ("1000m" and "1") is no difference.
    """
    new: KubeObject = without_read_only(hyphenated(plain(news)))
    live = live_part(state)
    shape: KubeObject = without_read_only(hyphenated(plain(old_inputs or news)))
    old: KubeObject = pruned(with_string_data(live, shape), shape)
    _align(api, live, old, new)
    found = not_ignored(differences(old, new, replacing_fields(new, settings)), ignored)
    if found and not has_unknown(new) and _is_built_in(new["apiVersion"]):
        found = _seen_by_server(api, found, live, new, field_manager(state, new))
    replaces = [each.written for each in found if each.replaces]
    if new["kind"] == "Job" and is_true(new, REPLACE_UNREADY) and _is_unready(api, live):
        replaces.append(f'metadata.annotations["{REPLACE_UNREADY}"]')
    same_place = name_of(new) == name_of(live) and namespace_of(new) == namespace_of(live)
    return Verdict(found, replaces, bool(replaces) and is_named(new) and not is_true(new, AUTONAMED) and same_place)


def _align(api: LabApi, live: KubeObject, old: KubeObject, new: KubeObject) -> None:
    """Makes alike what is the same said differently: no namespace and `default`, a generated name and the same name given."""
    for each in (old, new):
        each["metadata"] = dict(metadata(each))
    if is_namespaced(api, new):
        for each in (old, new):
            each["metadata"].setdefault("namespace", "default")
        if not namespace_of(live):
            live["metadata"] = {**metadata(live), "namespace": "default"}
    else:
        for each in (old, new):
            each["metadata"].pop("namespace", None)
    if name_of(new):
        old["metadata"]["name"] = name_of(live)
    for key in ("apiVersion", "kind"):
        old.setdefault(key, new[key])


def _is_built_in(api_version: str) -> bool:
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def _seen_by_server(api: LabApi, found: list[Difference], live: KubeObject, new: KubeObject, manager: str) -> list[Difference]:
    """`found` without the differences that the server would not see, by a dry run; all of them if it refuses the dry run.

    The real provider normalises built-in kinds with the Go types, which is not to be had here; custom resources it compares as
    they are written, and so does this.
    """
    try:
        named = {**new, "metadata": {**metadata(new), "name": name_of(new) or name_of(live)}}
        then = api.apply(named, namespace_of(new), manager or "pulumi-kubernetes", force=True, dry_run=True)
    except (Refusal, UnservedKindError):
        return found
    now, then = with_string_data(live, new), with_string_data(then, new)

    def is_seen(each: Difference) -> bool:
        # An empty object that the server drops is added to nothing; a value that is written anew as it is now is no update.
        before = {Change.ADD: value_at({}, ("",)), Change.UPDATE: value_at(now, each.path)}.get(each.change)
        return each.change is Change.DELETE or not same(before, value_at(then, each.path))

    return [each for each in found if is_seen(each)]


def _is_unready(api: LabApi, live: KubeObject) -> bool:
    found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
    rule = rule_for(found) if found else None
    return bool(found and rule and not rule.look(found, api).ready)
