"""Machines described in a stack file because the catalog does not have them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, WithJsonSchema, model_validator

from flexspot.capacity.catalog.accelerators import NVIDIA, of_ec2_machine
from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.machines import LOCAL_SSD_GB, Architecture, BootDisk, Gpu, Machine, is_zone_id
from flexspot.capacity.values.names import EC2_MACHINE, GKE_MACHINE, GPU_NAME, Zone

_SOURCE = "the stack file"

UsdPerHour = Annotated[Decimal, Field(gt=0, le=10_000), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 10_000})]


GpuName = Annotated[str, Field(pattern=GPU_NAME)]
GpuMemoryMib = Annotated[int, Field(ge=1024, le=4_194_304)]


class DescribedGpu(DescribedRecord):
    """The GPUs of a described machine: whole NVIDIA GPUs, or AWS Neuron devices in an EC2 machine of an inf or trn family."""

    name: GpuName
    """The cloud's name for the GPU."""

    count: Annotated[int, Field(ge=1, le=16)]
    """GPUs per machine."""

    memory_mib: GpuMemoryMib
    """Memory of one GPU, in MiB."""

    model: GpuName | None = None
    """The GPU's name in reports. Include the memory if one name covers several sizes, such as h100-80gb. Default: `name`."""

    def gpu(self, manufacturer: str) -> Gpu:
        """Return the GPUs as the catalog describes them."""
        model = self.model or self.name
        return Gpu(name=self.name, model=model, manufacturer=manufacturer, counts=(self.count,), memory_mib=self.memory_mib)


class DescribedEc2Gpu(DescribedGpu):
    """The GPUs of a described EC2 machine."""

    name: GpuName
    """The GPU's name in Karpenter's label karpenter.k8s.aws/instance-gpu-name: EC2's name in lower case with hyphens, such as l4 or
    rtx-pro-server-6000. For a Neuron device, its name in karpenter.k8s.aws/instance-accelerator-name, such as trainium2."""

    memory_mib: GpuMemoryMib
    """Memory of one GPU, in MiB, exactly as EC2 reports it (GpuInfo.Gpus.MemoryInfo.SizeInMiB), because nodes are selected by it. For a
    Neuron device, NeuronInfo.NeuronDevices.MemoryInfo.SizeInMiB."""


class DescribedGkeGpu(DescribedGpu):
    """The GPUs of a described Compute Engine machine."""

    name: GpuName
    """The GPU's name in GKE's label cloud.google.com/gke-accelerator, such as nvidia-l4 (accelerators.guestAcceleratorType)."""


class DescribedPrice(DescribedRecord):
    """The price of a described machine, in US dollars per hour, GPUs included."""

    on_demand_usd_per_hour: UsdPerHour | None = None
    """On-demand price, also used for reserved capacity, in US dollars per hour. Default: unknown."""

    spot_usd_per_hour: UsdPerHour | None = None
    """Spot price, in US dollars per hour. Default: unknown."""

    as_of: date
    """The date on which the price was read, in quotes, such as '2026-11-24'."""

    @model_validator(mode="after")
    def _has_a_price(self) -> Self:
        if self.on_demand_usd_per_hour is None and self.spot_usd_per_hour is None:
            raise ValueError("has no price; set on_demand_usd_per_hour or spot_usd_per_hour, or leave price out if it is not known")
        return self


class DescribedMachine(DescribedRecord):
    """A machine that is not in the catalog."""

    name: str
    """The machine type, as pools and the system pool refer to it."""

    vcpu: Annotated[int, Field(ge=1, le=4096)]
    """vCPU (EC2: VCpuInfo.DefaultVCpus; Compute Engine: guestCpus)."""

    memory_mib: Annotated[int, Field(ge=1024, le=67_108_864)]
    """Memory, in MiB (EC2: MemoryInfo.SizeInMiB; Compute Engine: memoryMb)."""

    gpu: DescribedGpu | None = None
    """Its GPUs. Default: none, for a machine of the system pool."""

    architecture: Architecture = Architecture.AMD64
    """Processor architecture of its images: amd64 (x86_64) or arm64."""

    zones: tuple[Zone, ...] = ()
    """Zones of the platform's region that offer it, by name or by id like the platform's own zones. Default: unknown, and not checked."""

    price: DescribedPrice | None = None
    """Its price in the platform's region. Default: unknown, and reported as unknown wherever costs are added up."""

    @property
    def manufacturer(self) -> str:
        """Manufacturer of its GPUs, as the catalog names it."""
        return NVIDIA.manufacturer

    def machine(self, region: str) -> Machine:
        """Return the machine as the catalog of `region` describes it."""
        by_id, by_name = ([zone for zone in self.zones if is_zone_id(zone) is wanted] for wanted in (True, False))
        return Machine(
            name=self.name,
            vcpu=self.vcpu,
            memory_mib=self.memory_mib,
            gpu=self.gpu and self.gpu.gpu(self.manufacturer),
            architecture=self.architecture,
            zones={region: tuple(by_name)} if self.zones else {},
            zone_ids={region: tuple(by_id)} if by_id else {},
            source=_SOURCE,
        )


class DescribedEc2Machine(DescribedMachine):
    """An EC2 machine that is not in the catalog, with the figures of `aws ec2 describe-instance-types`."""

    name: Annotated[str, Field(pattern=EC2_MACHINE)]
    """The instance type, as pools and the system pool refer to it."""

    gpu: DescribedEc2Gpu | None = None
    """Its GPUs. Default: none, for a machine of the system pool."""

    local_nvme_gb: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Total size of its built-in NVMe disks, in GB (InstanceStorageInfo.TotalSizeInGB)."""

    efa_interfaces: Annotated[int, Field(ge=0, le=149)] = 0
    """Number of network cards that can have an EFA interface (NetworkInfo.EfaInfo.MaximumEfaInterfaces); 0: no EFA."""

    efa_first_card: Annotated[int, Field(ge=0, le=149)] = 0
    """Index of the first network card whose InterfaceTypes include efa-only; 1 if card 0 does not support it."""

    max_pods: Annotated[int, Field(ge=4, le=4096)] | None = None
    """Number of pods that a node has addresses for, from eni-max-pods.txt in awslabs/amazon-eks-ami. Required for the system pool.
    Default: unknown."""

    @property
    def manufacturer(self) -> str:
        """Manufacturer of its accelerators, which the instance family determines."""
        return of_ec2_machine(self.name).manufacturer

    @model_validator(mode="after")
    def _first_card_needs_interfaces(self) -> Self:
        if self.efa_first_card and not self.efa_interfaces:
            raise ValueError("has efa_first_card without efa_interfaces; set both, or leave both out")
        return self

    def machine(self, region: str) -> Machine:
        """Return the machine as the catalog of `region` describes it."""
        own = {
            "max_pods": self.max_pods or 0,
            "local_ssd_gb": self.local_nvme_gb,
            "efa_interfaces": self.efa_interfaces,
            "efa_first_card": self.efa_first_card,
        }
        return super().machine(region).model_copy(update=own)


class DescribedGkeMachine(DescribedMachine):
    """A Compute Engine machine that is not in the catalog, with the figures of `gcloud compute machine-types describe`."""

    name: Annotated[str, Field(pattern=GKE_MACHINE)]
    """The machine type, as pools and the system pool refer to it. Families to which GPUs are attached, such as n1, are not supported."""

    gpu: DescribedGkeGpu | None = None
    """Its GPUs. Default: none, for a machine of the system pool."""

    bundled_local_ssd_disks: Annotated[int, Field(ge=0, le=64)] = 0
    """Number of built-in 375 GB disks (bundledLocalSsds.partitionCount)."""

    boot_disk: BootDisk = BootDisk.HYPERDISK_BALANCED
    """Its boot disk type: `hyperdisk-balanced`, as for all families since 2024, or `pd-balanced`."""

    compact_placement: bool = False
    """True if it supports compact placement."""

    flex_start: bool = False
    """True if DWS offers it, for pools with flex-start or queued capacity."""

    def machine(self, region: str) -> Machine:
        """Return the machine as the catalog of `region` describes it."""
        own = {
            "local_ssd_gb": self.bundled_local_ssd_disks * LOCAL_SSD_GB,
            "boot_disk": self.boot_disk,
            "compact_placement": self.compact_placement,
            "flex_start": self.flex_start,
        }
        return super().machine(region).model_copy(update=own)
