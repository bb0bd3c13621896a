"""A component that is constructed from another language's inputs is the same as in a Python program."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from component_calls import calls_of_all, calls_of_stacks, host, on_the_wire, without
from program_declarations import COMPONENTS, Preview, under_mocks
from pulumi.errors import InputPropertiesError
from pulumi.output import Unknown

from flexspot.components.hosting import plugin
from flexspot.components.hosting.host import PACKAGE, hosted
from flexspot.infra.declaring import components_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from program_declarations import Declared

pytestmark = pytest.mark.slow


class _Monitor(Preview):
    def ReadResource(self, request: Any) -> Any:  # noqa: N802 -- the protocol's name
        assert COMPONENTS in request.parent, "from which it has its provider"
        return super().ReadResource(request)


def made(make: Callable[[], object]) -> tuple[dict[str, Declared], list[str]]:
    """Return the resources that a program declares and reads."""
    found = under_mocks("test", make, _Monitor())
    for each in found.made.values():
        if each.type.startswith(COMPONENTS):
            # A component's own inputs are only recorded. A missing one is null or absent.
            each.inputs = without_nulls(each.inputs)
    return found.made, found.read


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def constructed(component: str, name: str, inputs: dict[str, Any]) -> tuple[dict[str, Declared], list[str]]:
    return made(lambda: host().construct(name, f"{PACKAGE}:index:{component}", inputs, pulumi.ResourceOptions()))


def refusal(component: str, inputs: dict[str, Any]) -> dict[str, str]:
    """Return the reasons for refusing each input, by its path. The path of the component as a whole is empty."""
    with pytest.raises(InputPropertiesError) as refused:
        constructed(component, "it", inputs)
    # With None, the SDK's server itself fails.
    assert refused.value.errors is not None
    return {each["property_path"]: each["reason"] for each in refused.value.errors} or {"": refused.value.message}


def test_every_component_is_constructed_here() -> None:
    assert sorted(each.__name__ for each in hosted()) == sorted(calls_of_all())


@pytest.mark.parametrize("component", hosted(), ids=lambda each: each.__name__)
def test_it_is_the_same_from_the_wire_as_from_python(component: Any) -> None:
    """Whole numbers arrive as floats, optional inputs may be absent, and names are the schema's.

    A child has its component as parent, from which it has its provider, and its name begins with the component's.
    """
    for name, args in calls_of_all()[component.__name__].items():
        there, read = made(lambda args=args, name=name: component(name, args))
        wire = on_the_wire(component.__name__, args)

        assert constructed(component.__name__, name, json.loads(json.dumps(wire))) == (there, read)
        own = f"{COMPONENTS}{component.__name__} {name}"
        assert {each.parent for each in there.values()} <= {"the stack", own}
        assert [key for key, each in there.items() if each.parent == "the stack"] == [own]
        assert [each.name for key, each in there.items() if key != own and not each.name.startswith(f"{name}-")] == []


@pytest.mark.parametrize("component", hosted(), ids=lambda each: each.__name__)
def test_each_optional_argument_can_be_omitted_alone_and_with_all_others(component: Any) -> None:
    """A component that needs it because of other arguments refuses the inputs. It does not fail on a missing key."""
    kind = component.__init__.__annotations__["args"]
    args = max(calls_of_all()[component.__name__].values(), key=lambda each: len(str(each)))
    optional: set[str] = set()
    without(args, kind, lambda each: bool(optional.add(each)))

    for dropped in [optional, *({each} for each in sorted(optional))]:
        given = without(args, kind, dropped.__contains__)
        try:
            made(lambda given=given: component("it", given))
        except ValueError as refused:
            assert f"{component.__name__} " in str(refused)  # noqa: PT017 -- most are declared


REQUIRED = {
    token.rpartition(":")[2]: sorted(each["requiredInputs"])
    for token, each in host().described_schema["resources"].items()
    if each.get("requiredInputs")
}


@pytest.mark.parametrize("component,required", REQUIRED.items(), ids=REQUIRED)
def test_without_its_inputs_each_required_one_is_named_and_nothing_is_registered(component: str, required: list[str]) -> None:
    reasons = refusal(component, {})

    assert sorted(reasons) == required
    assert all(reason.startswith("is missing; give ") for reason in reasons.values())


@functools.cache
def pool() -> dict[str, Any]:
    """Return a pool's inputs as they arrive over the wire."""
    return on_the_wire("GpuNodePool", next(iter(calls_of_stacks()["GpuNodePool"].values())))


@pytest.mark.parametrize(
    "change,path,reason",
    [
        ({"pool": 7.0}, "pool", "is 7, but must be a string"),
        ({"machines": "g6.xlarge"}, "machines", "is 'g6.xlarge', but must be a list"),
        ({"machines": [1.0]}, "machines[0]", "is 1, but must be a string"),
        ({"maxNodes": 2.5}, "maxNodes", "is 2.5, but must be a whole number"),
        ({"maxNodes": "4"}, "maxNodes", "is '4', but must be a whole number"),
        ({"maxNodes": True}, "maxNodes", "is True, but must be a whole number"),
        ({"maxNodes": float("inf")}, "maxNodes", "is inf, but must be a whole number"),
        ({"consolidates": "yes"}, "consolidates", "is 'yes', but must be true or false"),
        ({"labels": ["a"]}, "labels", "is ['a'], but must be a map"),
        ({"labels": {"a": 1.0}}, "labels['a']", "is 1, but must be a string"),
        ({"nodeClass": "it"}, "nodeClass", "is 'it', but must be a map with group, kind, name"),
        ({"nodeClass": {"group": "g", "kind": "k"}}, "nodeClass.name", "is missing; give a string"),
        (
            {"taints": [{"key": "a", "value": "b", "effect": "c", "efect": "d"}]},
            "taints[0].efect",
            "is not an input; the inputs are effect, key,",
        ),
        ({"maxNode": 4.0}, "maxNode", "is not an input; the inputs are capacityTypes"),
        ({"idleSeconds": -1.0}, "idleSeconds", ""),
        ({"pool": "x" * 200, "maxNodes": "x" * 200}, "maxNodes", f"is '{'x' * 56}..., but must be a whole number"),
        ({"pool": Unknown()}, "pool", "must be known before resources are created; give a plain value, not an output"),
    ],
)
def test_an_input_that_cannot_be_used_is_refused_by_its_path_with_what_it_must_be(change: dict[str, Any], path: str, reason: str) -> None:
    reasons = refusal("GpuNodePool", pool() | change)

    assert list(reasons) == [path]
    assert reasons[path].startswith(reason)


def test_all_problems_of_a_hosted_component_are_reported_at_once() -> None:
    assert sorted(refusal("GpuNodePool", pool() | {"pool": 1.0, "machines": 2.0, "nonsense": 3.0})) == ["machines", "nonsense", "pool"]


def test_a_components_refusal_is_one_line_with_the_programs_own_names_and_no_place_in_python() -> None:
    reasons = refusal("GpuNodePool", pool() | {"maxNodes": 0.0})[""]

    assert reasons.startswith("gpu-pool-without-limit: GpuNodePool it has ")
    assert "max_nodes" not in reasons
    assert "maxNodes" in reasons
    assert "\n" not in reasons
    assert ".py" not in reasons


@pytest.mark.parametrize("of", ["resources", "types"])
def test_everything_in_the_schema_is_described_in_words_for_any_language(of: str) -> None:
    """No description is a block of code in an editor."""
    python = re.compile(r"Raises\s+\w*Error|Default: (?:None|True|False)\b|^ {4}", re.MULTILINE)
    for token, each in host().described_schema[of].items():
        fields = each.get("inputProperties" if of == "resources" else "properties", {})
        own = {re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name) for name in fields}
        for where, described in {token: each, **{f"{token}.{name}": field for name, field in fields.items()}}.items():
            text = described.get("description", "")
            assert text, where
            assert python.search(text) is None, where
            assert set(re.findall(r"\w+_\w+", text)) & own == set(), where
            assert text == text.strip(), where


def test_the_schema_has_the_packages_version() -> None:
    schema = host().described_schema

    assert (schema["name"], schema["version"]) == (PACKAGE, host().version)
    assert {each["name"] for each in schema.get("dependencies", [])} <= {"aws", "gcp", "kubernetes"}


def test_the_reference_of_components_is_written_from_the_schema() -> None:
    """When this fails: `python -m flexspot.infra.declaring.components_page`."""
    written = components_page.page(host().described_schema)

    assert components_page.PAGE.read_text(encoding="utf-8") == written
    for token in host().described_schema["resources"]:
        assert f"\n## {token.rpartition(':')[2]}\n" in written


def test_the_plugin_answers_with_the_schema_of_the_components() -> None:
    """When this fails: `python -m flexspot.infra.declaring.components_page`."""
    assert plugin.SCHEMA.read_text(encoding="utf-8") == plugin.written(host().described_schema, components_page.offered())


def schema_of(cloud: str) -> dict[str, Any]:
    return json.loads(plugin.Plugin(cloud).schema or "")


def test_the_package_of_a_cloud_has_its_components_and_those_of_every_cloud_with_all_their_types() -> None:
    schemas = {cloud: schema_of(cloud) for cloud in ("eks", "gke")}

    names = {cloud: {each.rpartition(":")[2] for each in schema["resources"]} for cloud, schema in schemas.items()}
    assert names["eks"] | names["gke"] == {each.rpartition(":")[2] for each in host().described_schema["resources"]}
    assert {"Team", "Queues", "MonthlyCost", "QueuedJob"} <= names["eks"] & names["gke"]
    assert {"EksPlatform", "GpuNodePool", "S3Bucket"} <= names["eks"] - names["gke"]
    assert {"GkePlatform", "GkeGpuNodePool", "GcsBucket"} <= names["gke"] - names["eks"]
    for cloud, schema in schemas.items():
        assert schema["name"] == f"flexspot-{cloud}"
        assert {each.partition(":")[0] for each in (*schema["resources"], *schema["types"])} == {f"flexspot-{cloud}"}
        named = set(re.findall(r'"#/types/([^"]+)"', json.dumps(schema)))
        assert named == set(schema["types"])


@pytest.mark.parametrize("cloud,other", [("eks", "pulumi_gcp"), ("gke", "pulumi_aws")])
def test_no_component_of_a_package_needs_the_other_clouds_sdk(cloud: str, other: str) -> None:
    program = f"""
import sys
sys.modules[{other!r}] = None
from importlib import import_module
from flexspot.components.hosting.plugin import Plugin
for module in sorted({{*Plugin({cloud!r})._modules.values()}}):
    import_module(module)
print(*sys.modules)
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert "flexspot.infra.declaring.platforms" in ended.stdout.split()


def test_the_plugin_loads_no_clouds_sdk_before_a_component_is_constructed() -> None:
    program = "import sys; from flexspot.components.hosting.plugin import Plugin; Plugin('eks'); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert "flexspot.components.hosting.plugin" in loaded
    assert {each.partition(".")[0] for each in loaded} & {"pulumi_aws", "pulumi_gcp", "pulumi_kubernetes", "pydantic"} == set()


def test_an_unknown_component_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"flexspot-eks:index:GpuPool is not a component; the components are .*GpuNodePool"):
        plugin.Plugin("eks").construct("it", "flexspot-eks:index:GpuPool", {}, pulumi.ResourceOptions())
