"""Machines that a stack file describes, because the catalog does not know them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, WithJsonSchema, model_validator

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.machines import Architecture
from capacity.values.names import EC2_MACHINE, GPU_NAME, Zone

UsdPerHour = Annotated[Decimal, Field(gt=0, le=10_000), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 10_000})]


class DescribedGpu(DescribedRecord):
    """The GPUs of a described machine: whole ones of NVIDIA's, as everything that is counted here is."""

    name: Annotated[str, Field(pattern=GPU_NAME)]
    """The GPU's name in Karpenter's label karpenter.k8s.aws/instance-gpu-name: EC2's in lower case with hyphens, such as l4 or
    rtx-pro-server-6000."""

    count: Annotated[int, Field(ge=1, le=16)]
    """GPUs of one machine."""

    memory_mib: Annotated[int, Field(ge=1024, le=4_194_304)]
    """Memory of one GPU, in MiB, exactly as EC2 reports it (GpuInfo.Gpus.MemoryInfo.SizeInMiB): nodes are chosen by it."""

    model: Annotated[str, Field(pattern=GPU_NAME)] | None = None
    """The GPU's name in reports, with its memory where one name has several sizes, such as h100-80gb. Default: `name`."""


class DescribedPrice(DescribedRecord):
    """What a described machine costs, in US dollars an hour, GPUs included."""

    on_demand_usd_per_hour: UsdPerHour | None = None
    """On demand, and reserved. Default: not known."""

    spot_usd_per_hour: UsdPerHour | None = None
    """As Spot. Default: not known."""

    as_of: date
    """The day on which it was read, in quotes, such as '2026-11-24'."""

    @model_validator(mode="after")
    def _has_a_price(self) -> Self:
        if self.on_demand_usd_per_hour is None and self.spot_usd_per_hour is None:
            raise ValueError("has no price; give on_demand_usd_per_hour or spot_usd_per_hour, or leave it out for one that is not known")
        return self


class DescribedMachine(DescribedRecord):
    """A machine of EC2 that the catalog does not know, in the figures of `aws ec2 describe-instance-types`."""

    name: Annotated[str, Field(pattern=EC2_MACHINE)]
    """The instance type, by which pools and the system pool mean it."""

    vcpu: Annotated[int, Field(ge=1, le=4096)]
    """vCPU (VCpuInfo.DefaultVCpus)."""

    memory_mib: Annotated[int, Field(ge=1024, le=67_108_864)]
    """Memory, in MiB (MemoryInfo.SizeInMiB)."""

    gpu: DescribedGpu | None = None
    """Its GPUs. Default: none, for a machine of the system pool."""

    architecture: Architecture = Architecture.AMD64
    """For which processors its images are built: amd64 (x86_64) or arm64."""

    local_nvme_gb: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """NVMe disks that come with it, in GB in all (InstanceStorageInfo.TotalSizeInGB)."""

    efa_interfaces: Annotated[int, Field(ge=0, le=149)] = 0
    """Network cards that take an EFA interface (NetworkInfo.EfaInfo.MaximumEfaInterfaces); 0: no EFA."""

    efa_first_card: Annotated[int, Field(ge=0, le=149)] = 0
    """The first network card among whose InterfaceTypes is efa-only: 1 of machines whose card 0 takes none."""

    max_pods: Annotated[int, Field(ge=4, le=4096)] | None = None
    """Pods that a node has addresses for, as in awslabs/amazon-eks-ami's eni-max-pods.txt. The system pool needs it; default: not known."""

    zones: tuple[Zone, ...] = ()
    """Zones of the platform's region that offer it, by name or id as the platform's own. Default: not known, and not checked."""

    price: DescribedPrice | None = None
    """Its price in the platform's region. Default: not known, and told as such wherever costs are added up."""

    @model_validator(mode="after")
    def _a_first_card_is_one_of_some(self) -> Self:
        if self.efa_first_card and not self.efa_interfaces:
            raise ValueError("has efa_first_card without efa_interfaces; give both, or leave both out")
        return self
