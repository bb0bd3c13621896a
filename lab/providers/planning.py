"""What the Kubernetes provider does before anything is changed: names and defaults (Check), and differences (Diff)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.providers.diffing import Change, Difference, diff_answer, differences, not_ignored, replacing_fields
from lab.providers.failures import ProviderError
from lab.providers.kinds import Kinds, normalized
from lab.providers.objects import (
    AUTONAMED,
    DEFAULT_NAMESPACE,
    REPLACE_UNREADY,
    autonamed,
    is_named,
    is_true,
    kind_of,
    metadata,
    name_of,
    namespace_of,
    resource_name,
    type_of,
    with_managed_by,
    with_old_autoname,
)
from lab.providers.state import inputs_in, live_part, with_secrets
from lab.providers.values import Properties, hyphenated, plain, underscored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.cluster import KubeObject
    from lab.providers.settings import Settings


@dataclass(frozen=True)
class Verdict:
    """The answer to Diff. `replaces` are the properties for which the object must be made anew."""

    found: list[Difference]
    replaces: list[str]
    delete_before_replace: bool

    def answer(self) -> Any:
        """The engine's message. The names of whole properties (`diffs`) are left out, as the official provider leaves them."""
        return diff_answer(
            self.found,
            replaces=self.replaces,
            delete_before_replace=self.delete_before_replace,
            # A removed property is in no outputs that the engine could show.
            of_inputs=lambda each: each.change is Change.DELETE,
        )


def require_offered(urn: str) -> None:
    """Raises ProviderError for the resource types that the stand-in does not do."""
    token = type_of(urn)
    if token == "kubernetes:helm.sh/v3:Release":  # noqa: S105 -- a type token
        raise ProviderError(
            f"{token} is not offered by the stand-in Kubernetes provider: the lab has no charts and no images. Declare the chart only "
            "for clouds, and its objects, or a substitute for them, for `cloud: local`."
        )
    group = token.split(":")[1].rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return
    if token.endswith("Patch"):
        raise ProviderError(f"{token} is not offered by the stand-in Kubernetes provider; declare the whole object instead.")
    if token.endswith("List"):
        raise ProviderError(f"{token} cannot be created: lists are for manifests. Declare each object of it by itself.")


def check(  # noqa: PLR0913 -- what the engine asks with
    kinds: Kinds, settings: Settings, urn: str, olds: Properties, news: Properties, *, seed: bytes, wish: Any = None
) -> Properties:
    """The inputs that all later steps work with: the program's in their normal form, named and put into a namespace."""
    require_offered(urn)
    inputs: KubeObject = hyphenated(plain(news))
    inputs["apiVersion"], inputs["kind"] = kind_of(urn, inputs)
    inputs = normalized(kinds, inputs)
    old: KubeObject = hyphenated(plain(olds))
    inputs = with_managed_by(with_old_autoname(inputs, old), old) if old else autonamed(inputs, resource_name(urn), seed, wish)
    if not metadata(inputs).get("namespace") and kinds.is_namespaced(inputs["apiVersion"], inputs["kind"]):
        inputs["metadata"] = {**metadata(inputs), "namespace": settings.namespace or DEFAULT_NAMESPACE}
    return with_secrets(underscored(inputs), news)


def diff(  # noqa: PLR0913 -- what the engine asks with
    kinds: Kinds,
    settings: Settings,
    *,
    state: Properties,
    old_inputs: Properties,
    news: Properties,
    ignored: Sequence[str],
    is_unready: Callable[[KubeObject], bool] = lambda _: False,
) -> Verdict:
    """What an update would change: the inputs in the state against the new ones. The cluster is not looked at.

    `is_unready` says of a live Job whether it has not completed, for the annotation pulumi.com/replaceUnready.
    """
    new = normalized(kinds, hyphenated(plain(news)))
    old = normalized(kinds, inputs_in(state, old_inputs))
    live = live_part(state)
    old, new = _in_a_namespace(kinds, old, new), _in_a_namespace(kinds, new, new)
    for key in ("apiVersion", "kind"):
        old.setdefault(key, new[key])
    if name_of(new) and name_of(live):
        # A name that was generated and is now written down is the same name.
        old["metadata"]["name"] = name_of(live)
    found = not_ignored(differences(old, new, replacing_fields(new, settings)), ignored)
    replaces = [each.written for each in found if each.replaces]
    if new["kind"] == "Job" and is_true(new, REPLACE_UNREADY) and is_unready(live):
        replaces.append(f'.metadata.annotations["{REPLACE_UNREADY}"]')
    same_place = name_of(new) == name_of(live) and namespace_of(new) == namespace_of(_in_a_namespace(kinds, live, new))
    return Verdict(found, replaces, bool(replaces) and is_named(new) and not is_true(new, AUTONAMED) and same_place)


def _in_a_namespace(kinds: Kinds, each: KubeObject, new: KubeObject) -> KubeObject:
    """`each` in the namespace `default` if it names none; in none if its kind is not in namespaces."""
    found = dict(metadata(each))
    if kinds.is_namespaced(new["apiVersion"], new["kind"]):
        found["namespace"] = found.get("namespace") or DEFAULT_NAMESPACE
    else:
        found.pop("namespace", None)
    return {**each, "metadata": found}
