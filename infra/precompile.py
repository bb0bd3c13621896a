"""`python -m infra.precompile`: compiles the SDKs that a stack's program loads, as part of setting up.

Cloud SDKs are so large that compiling them takes longer than a whole preview. Python keeps what it compiled at the first import, unless an
environment says PYTHONDONTWRITEBYTECODE, as many containers and CI machines do: then every command would compile them anew.
"""

from __future__ import annotations

import compileall
import sys
import sysconfig
from pathlib import Path

LOADED = (
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
    "pulumi_kubernetes/apiextensions",
    "pulumi_kubernetes/core",
    "pulumi_kubernetes/helm",
    "pulumi_kubernetes/meta",
    "pulumi_kubernetes/networking",
    "pulumi_kubernetes/rbac",
    "pulumi_kubernetes/scheduling",
    "pulumi_kubernetes/yaml",
    "pulumi_policy",
    "pydantic",
    "rich",
    "typer",
    "yaml",
)


def main() -> None:
    """Compiles what is not compiled yet, on all cores."""
    packages = Path(sysconfig.get_path("purelib"))
    done = [compileall.compile_dir(packages / name, quiet=2, workers=0) for name in LOADED if (packages / name).is_dir()]
    sys.exit(0 if done else "infra.precompile: none of the packages is there; run `make setup`")


if __name__ == "__main__":
    main()
