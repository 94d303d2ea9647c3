"""A node group's launch template: always there, since EKS cannot give a group one later.

Disk, security groups, metadata service, RAID and tags change as a new version that nodes roll to. Instance
type, EFA and reservation stand in it too, but a change of these makes a new group beside the old (`groups`):
rolling would take capacity away before anybody knows that there is any of the new kind.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane.api.eks import EKSNodePoolSpec
from modelplane.clouds.eks.aws import Aws
from modelplane.core.paths import Manifest
from modelplane.facts.aws import InstanceType

CAPACITY_BLOCK, RESERVATION, SPOT, ON_DEMAND = "CapacityBlock", "Reservation", "Spot", "OnDemand"
_RAID = "RAID0"
_ROOT = "/dev/xvda"
_BOUNDARY = "==MODELPLANE=="
_TAGGED = ("instance", "network-interface", "volume")


def purchase(spec: EKSNodePoolSpec) -> str:
    """Return how the pool's instances are bought."""
    if spec.purchase:
        return spec.purchase
    if spec.capacity_block is not None:
        return CAPACITY_BLOCK
    return RESERVATION if spec.reservation is not None else ON_DEMAND


@dataclass(frozen=True, slots=True)
class Template:
    """A launch template.

    Attributes:
        aws: the cluster's envelope.
        spec: the pool's.
        hardware: what is known of the instance type; None for a system pool's.
    """

    aws: Aws
    spec: EKSNodePoolSpec
    hardware: InstanceType | None

    def manifest(self, key: str, placement_group: str, labels: dict[str, str]) -> Manifest:
        """Return the template under a composed key; without a placement group nodes stand anywhere."""
        name = self.aws.name(key)
        parameters: Manifest = {
            "name": name,
            "instanceType": self.spec.instance_type,
            "blockDeviceMappings": [{"deviceName": _ROOT, "ebs": self._root()}],
            # With one hop a pod cannot reach the node's role; host network pods, as the CNI, still do.
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "required",
            },
            "tagSpecifications": [
                {"resourceType": kind, "tags": self.aws.all_tags(name)} for kind in _TAGGED
            ],
            **self._network(),
            **self._market(),
        }
        if placement_group:
            parameters["placement"] = {"groupName": placement_group}
        if self.spec.local_storage == _RAID:
            parameters["userData"] = _node_config()
        return self.aws.resource(c.EC2_API, "LaunchTemplate", key, parameters, labels=labels)

    def _root(self) -> Manifest:
        # Booleans are texts in this kind.
        disk: Manifest = {
            "deleteOnTermination": "true",
            "encrypted": "true",
            "volumeSize": self.spec.disk_size_gb,
            "volumeType": "gp3",
        }
        if self.spec.role == c.GPU_ROLE:
            # Engine images are over 10 GB: the 125 MiB/s that gp3 starts at is what nodes would wait for.
            disk |= {"iops": 4000, "throughput": 500}
        return disk

    def _network(self) -> Manifest:
        groups = list(self.spec.security_group_ids)
        if self.spec.fabric != c.FABRIC_EFA or self.hardware is None:
            # EKS adds its own group only where the template names none, so that one is named too.
            return {"vpcSecurityGroupIds": groups[:1]}
        return {"networkInterfaces": interfaces(self.hardware.efa_cards, groups)}

    def _market(self) -> Manifest:
        spec, how = self.spec, purchase(self.spec)
        target: Manifest = {}
        if how == CAPACITY_BLOCK and spec.capacity_block is not None:
            target = {"capacityReservationId": spec.capacity_block.capacity_reservation_id}
        if how == RESERVATION and spec.reservation is not None:
            pair = {
                "capacityReservationId": spec.reservation.id,
                "capacityReservationResourceGroupArn": spec.reservation.resource_group_arn,
            }
            target = {name: value for name, value in pair.items() if value}
        if not target:
            return {}
        only = {
            "capacityReservationPreference": "capacity-reservations-only",
            "capacityReservationTarget": target,
        }
        market = {"instanceMarketOptions": {"marketType": "capacity-block"}} if how == CAPACITY_BLOCK else {}
        return {"capacityReservationSpecification": only, **market}


def interfaces(cards: Sequence[int], groups: Sequence[str]) -> list[Manifest]:
    """Return the network interfaces of an instance with EFA on these network cards.

    The first is a plain one and has the node's address; every EFA interface carries RDMA alone. So no address
    is spent on them, and types whose first card has no EFA work (EC2 User Guide, efa-acc-inst-types).
    """
    found = [_interface(0, 0, "interface", groups)]
    found += [_interface(card, 1 if card == 0 else 0, "efa-only", groups) for card in cards]
    return found


def _interface(card: int, device: int, kind: str, groups: Sequence[str]) -> Manifest:
    return {
        "deleteOnTermination": "true",
        "deviceIndex": device,
        "interfaceType": kind,
        "networkCardIndex": card,
        "securityGroups": list(groups),
    }


def _node_config() -> str:
    """Return the user data that puts kubelet, containerd and pod logs on the instance's own disks."""
    text = "\n".join(
        [
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
            "",
            f"--{_BOUNDARY}",
            "Content-Type: application/node.eks.aws",
            "",
            "---",
            "apiVersion: node.eks.aws/v1alpha1",
            "kind: NodeConfig",
            "spec:",
            "  instance:",
            "    localStorage:",
            f"      strategy: {_RAID}",
            "",
            f"--{_BOUNDARY}--",
            "",
        ]
    )
    return base64.b64encode(text.encode()).decode()
