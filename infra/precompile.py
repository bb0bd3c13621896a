"""`python -m infra.precompile`: compiles what a stack's program loads, as part of setting up.

Cloud SDKs are so large that compiling them takes longer than a whole preview. Python keeps what it compiled at the first import, unless an
environment says PYTHONDONTWRITEBYTECODE, as many containers and CI machines do: then every command would compile them anew.
"""

from __future__ import annotations

import compileall
import importlib
import sys
import sysconfig
from pathlib import Path

_PREFIX = (__package__ or "infra").removesuffix("infra")
"""What an installed package has before the names of its folders."""

STARTED = tuple(
    f"{_PREFIX}{each}" for each in ("infra.cli.app", "infra.program", "infra.gke", "infra.eks", "infra.local", "policies.engine")
)
"""What every command, program and policy pack begins with: whatever these import is compiled."""

LOADED_LATER = (
    "google",
    "grpc",
    "pulumi",
    "pulumi_aws/cloudwatch",
    "pulumi_aws/ec2",
    "pulumi_aws/eks",
    "pulumi_aws/iam",
    "pulumi_aws/kms",
    "pulumi_aws/s3",
    "pulumi_aws/sqs",
    "pulumi_aws/vpc",
    "pulumi_gcp/compute",
    "pulumi_gcp/container",
    "pulumi_gcp/projects",
    "pulumi_gcp/pubsub",
    "pulumi_gcp/serviceaccount",
    "pulumi_gcp/storage",
    "pulumi_kubernetes/admissionregistration",
    "pulumi_kubernetes/apiextensions",
    "pulumi_kubernetes/apps",
    "pulumi_kubernetes/batch",
    "pulumi_kubernetes/core",
    "pulumi_kubernetes/helm",
    "pulumi_kubernetes/meta",
    "pulumi_kubernetes/networking",
    "pulumi_kubernetes/rbac",
    "pulumi_kubernetes/scheduling",
    "pulumi_kubernetes/yaml",
    "pydantic",
    "rich",
    "typer",
    "yaml",
)
"""What is loaded when a resource of it is declared, in packages of which most is never loaded."""


def main() -> None:
    """Compiles what is not compiled yet, on all cores."""
    packages = Path(sysconfig.get_path("purelib"))
    own = Path(__file__).resolve().parents[1]
    folders = [packages / name for name in LOADED_LATER] + [own / name for name in ("capacity", "components", "infra", "lab", "policies")]
    done = [compileall.compile_dir(folder, quiet=2, workers=0) for folder in folders if folder.is_dir()]
    for name in STARTED:
        importlib.import_module(name)
    for module in [*sys.modules.values()]:
        source = getattr(module, "__file__", None)
        if source is not None and source.startswith(str(packages)):
            compileall.compile_file(source, quiet=2)
    sys.exit(0 if done else "infra.precompile: none of the packages is there; run `make setup`")


if __name__ == "__main__":
    main()
