"""The specs of EKSCluster, EKSNetwork and EKSNodePool, as far as code reads them."""

from typing import Any, Literal

from pydantic import Field

from modelplane import contracts as c
from modelplane.api.base import Model
from modelplane.api.images import ImagesBlock

DEFAULT_CIDR = "10.0.0.0/16"
ANYWHERE = "0.0.0.0/0"


class Credentials(Model):
    """The provider config that reaches the account."""

    type: str = "ClusterProviderConfig"
    name: str = "default"


class ExistingNetwork(Model):
    """A VPC that somebody else runs."""

    vpc_id: str
    private_subnet_ids: tuple[str, ...]
    public_subnet_ids: tuple[str, ...] = ()


class Network(Model):
    """The cluster's network."""

    cidr: str = DEFAULT_CIDR
    zones: tuple[str, ...] = ()
    nat: Literal["PerZone", "Single", "None"] = "PerZone"
    secondary_cidr: str = ""
    pods_in_secondary: bool = False
    existing: ExistingNetwork | None = None


class Networking(Model):
    """v0.4's network: ranges of the public subnets, in the region's first zones."""

    vpc_cidr: str = DEFAULT_CIDR
    subnet_cidrs: tuple[str, ...] = ("10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20")


class Access(Model):
    """Who reaches the cluster's API; no ranges at all turn its public endpoint off."""

    public_cidrs: tuple[str, ...] = (ANYWHERE,)
    admin_principals: tuple[str, ...] = ()
    permissions_boundary_arn: str = ""


class Encryption(Model):
    """Envelope encryption of Secrets: `Managed`, `None` or the ARN of a key."""

    kms_key: str = c.MANAGED


class Logging(Model):
    """Control-plane logs."""

    types: tuple[str, ...] = ("api", "audit", "authenticator")
    retention_days: int = 30


class Gpu(Model):
    """The GPU of a pool's nodes."""

    accelerator_type: str


class CapacityBlock(Model):
    """A Capacity Block that a pool's nodes run in."""

    capacity_reservation_id: str


class Reservation(Model):
    """An on-demand capacity reservation, or a group of them."""

    id: str = ""
    resource_group_arn: str = ""


class Taint(Model):
    """A taint of a pool's nodes."""

    key: str
    value: str = ""
    effect: str = c.NO_SCHEDULE


class Pool(Model):
    """The nodes of a pool."""

    instance_type: str
    role: str
    disk_size_gb: int = 100
    node_count: int = Field(default=1, ge=0)
    min_node_count: int = Field(default=0, ge=0)
    max_node_count: int = Field(default=8, ge=0)
    gpu: Gpu | None = None
    zones: tuple[str, ...] = ()
    fabric: str = c.FABRIC_NONE
    capacity_block: CapacityBlock | None = None
    purchase: str = ""
    reservation: Reservation | None = None
    local_storage: str = "None"
    taints: tuple[Taint, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)


class NamedPool(Pool):
    """A pool of an EKSCluster."""

    name: str


class EKSClusterSpec(Model):
    """What an EKSCluster asks for."""

    region: str
    kubernetes_version: str = "1.36"
    credentials: Credentials = Credentials()
    networking: Networking | None = None
    network: Network | None = None
    access: Access = Access()
    encryption: Encryption = Encryption()
    logging: Logging = Logging()
    support_type: str = "STANDARD"
    deletion_protection: bool = False
    tags: dict[str, str] = Field(default_factory=dict)
    stack_release: str = ""
    images: ImagesBlock = Field(default_factory=dict)
    components: dict[str, dict[str, Any]] = Field(default_factory=dict)
    node_pools: tuple[NamedPool, ...] = ()


class EKSNetworkSpec(Model):
    """What an EKSNetwork asks for."""

    region: str
    cluster_name: str
    credentials: Credentials = Credentials()
    networking: Networking | None = None
    network: Network = Network()
    pool_zones: tuple[str, ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)


class SubnetEntry(Model):
    """A private subnet, and its zone as the pool's owner and as AWS spell it."""

    id: str
    zone: str


class Outlived(Model):
    """A resource beside the pool that must be there as long as a node group is."""

    api_version: str
    kind: str
    name: str


class EKSNodePoolSpec(Pool):
    """What an EKSNodePool asks for."""

    cluster_name: str
    pool_name: str
    region: str
    version: str = ""
    credentials: Credentials = Credentials()
    node_role_arn: str = ""
    security_group_ids: tuple[str, ...] = ()
    subnets: tuple[SubnetEntry, ...] = ()
    outlived_by: tuple[Outlived, ...] = ()
    provider_config_name: str = ""
    tags: dict[str, str] = Field(default_factory=dict)
