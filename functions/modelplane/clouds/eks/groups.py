"""The node groups of a pool: one per zone, named after what can never change in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import EKSNodePoolSpec, SubnetEntry
from modelplane.clouds.eks import scaling, template
from modelplane.clouds.eks.aws import Aws
from modelplane.clouds.eks.site import serving
from modelplane.core import Inputs, paths
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired, Ready, Waiting
from modelplane.facts.aws import InstanceType

GROUP, TEMPLATE, PLACEMENT = "node-group-", "launch-template-", "placement-group-"
_CAPACITY = {template.SPOT: "SPOT", template.CAPACITY_BLOCK: "CAPACITY_BLOCK"}
_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}
# The autoscaler owns the number of nodes: filled in late, the provider would hold it.
_POLICIES = ("Create", "Observe", "Update", "Delete")


@dataclass(frozen=True, slots=True)
class Groups:
    """The node groups of one pool.

    Attributes:
        inputs: of the pass.
        spec: of the pool.
        aws: the cluster's envelope.
        hardware: what is known of the instance type; None for a system pool's.
    """

    inputs: Inputs
    spec: EKSNodePoolSpec
    aws: Aws
    hardware: InstanceType | None

    def resources(self) -> Iterator[Desired | Waiting]:
        """Yield each zone's template, placement group and node group; zones without nodes have none."""
        for subnet, counts in self._zones():
            mark = self.mark(subnet)
            key = f"{GROUP}{mark}"
            if counts.parked and key not in self.inputs.observed:
                continue
            placement = ""
            if self._together():
                placement = f"{PLACEMENT}{subnet.zone}"
                yield self._placement(placement)
            yield self._template(mark, placement)
            yield self._group(key, mark, subnet, counts, placement)

    def marks(self) -> set[str]:
        """Return what identifies the current groups: their zone and what can never change in them."""
        return {self.mark(subnet) for subnet in self.spec.subnets}

    def mark(self, subnet: SubnetEntry) -> str:
        """Return the zone and a digest of the group's immutable inputs."""
        spec = self.spec
        fixed = (
            self.ami,
            template.purchase(spec),
            spec.instance_type,
            spec.fabric,
            spec.capacity_block.capacity_reservation_id if spec.capacity_block else "",
            spec.reservation.id + spec.reservation.resource_group_arn if spec.reservation else "",
            spec.node_role_arn,
            subnet.id,
        )
        return f"{subnet.zone}-{names.digest(*fixed)}"

    @property
    def ami(self) -> str:
        """The kind of image: with NVIDIA's driver on GPU nodes."""
        arm = self.hardware.architecture == "arm64" if self.hardware else _is_arm(self.spec.instance_type)
        cpu = "ARM_64" if arm else "x86_64"
        return f"AL2023_{cpu}_{'NVIDIA' if self.spec.role == c.GPU_ROLE else 'STANDARD'}"

    def _zones(self) -> Iterator[tuple[SubnetEntry, scaling.Counts]]:
        spec = self.spec
        counts = scaling.shares(
            min(max(spec.node_count, spec.min_node_count), spec.max_node_count),
            spec.min_node_count,
            spec.max_node_count,
            len(spec.subnets),
            block=template.purchase(spec) == template.CAPACITY_BLOCK,
        )
        yield from zip(self._in_order(), counts, strict=True)

    def _in_order(self) -> list[SubnetEntry]:
        """Return the subnets in an order that no edit of a list changes.

        With fewer nodes than zones the last zones have none: those that have a group go first, or a zone
        that is named later would take the only node of another.
        """
        few = self.spec.max_node_count < len(self.spec.subnets)
        return sorted(self.spec.subnets, key=lambda x: (few and not self._stands(x.zone), x.zone))

    def _stands(self, zone: str) -> bool:
        return any(key.startswith(GROUP) and _zone(key) == f"{GROUP}{zone}" for key in self.inputs.observed)

    def _together(self) -> bool:
        # Capacity that is reserved stands where it was reserved, in a placement group of its own or in none.
        reserved = template.purchase(self.spec) in (template.CAPACITY_BLOCK, template.RESERVATION)
        return self.spec.fabric == c.FABRIC_EFA and not reserved

    def _labels(self, zone: str) -> dict[str, str]:
        return {c.POOL_LABEL: names.label_value(self.spec.pool_name), c.ZONE_LABEL: zone}

    def _key(self, key: str) -> str:
        return f"{self.spec.pool_name}-{key}"

    def _placement(self, key: str) -> Desired:
        zone = key.removeprefix(PLACEMENT)
        resource = self._resource(c.EC2_API, "PlacementGroup", key, {"strategy": "cluster"}, zone)
        return Desired(key, resource)

    def _template(self, mark: str, placement: str) -> Desired:
        key = f"{TEMPLATE}{mark}"
        made = template.Template(self.aws, self.spec, self.hardware).manifest(
            self._key(key),
            self.aws.name(self._key(placement)) if placement else "",
            self._labels(_zone(mark)),
        )
        after = (placement,) if placement else ()
        rule = Ready.at("status", "atProvider", "latestVersion")
        return Desired(key, made, rule, after=after, outlives=(f"{GROUP}{mark}",))

    def _group(
        self, key: str, mark: str, subnet: SubnetEntry, counts: scaling.Counts, placement: str
    ) -> Desired | Waiting:
        observed = self.inputs.observed.get(key)
        told = self.inputs.observed.get(f"{TEMPLATE}{mark}")
        launch = paths.text(told, "status", "atProvider", "id")
        number = paths.integer(told, "status", "atProvider", "latestVersion")
        if not launch or number is None:
            return Waiting(key, "ID and version of its launch template")
        scaled = paths.mapping(observed, "status", "atProvider", "scalingConfig")
        held, start = scaling.settings(counts, scaled)
        parameters: Manifest = {
            "amiType": self.ami,
            "capacityType": _CAPACITY.get(template.purchase(self.spec), "ON_DEMAND"),
            "clusterName": self.spec.cluster_name,
            "labels": self._node_labels(),
            # A number: "$Latest" never equals what EKS reports, so every look would be an update
            # (provider-upjet-aws#1375).
            "launchTemplate": {"id": launch, "version": str(number)},
            "nodeRepairConfig": {"enabled": True},
            "nodeRoleArn": self.spec.node_role_arn,
            "scalingConfig": held,
            "subnetIds": [subnet.id],
            "updateConfig": self._update(),
        }
        if taints := self._taints():
            parameters["taint"] = taints
        if self.spec.version:
            parameters["version"] = self.spec.version
        made = self._resource(
            c.EKS_API,
            "NodeGroup",
            key,
            parameters,
            subnet.zone,
            policies=_POLICIES,
        )
        made["spec"]["initProvider"] = {"scalingConfig": start}
        after = (f"{TEMPLATE}{mark}", *([placement] if placement else []))
        return Desired(key, made, serving(observed), after=after)

    def _resource(
        self, api: str, kind: str, key: str, parameters: Mapping[str, Any], zone: str, **kwargs: Any
    ) -> Manifest:
        labels = self._labels(zone)
        return self.aws.resource(api, kind, self._key(key), parameters, labels=labels, **kwargs)

    def _update(self) -> Manifest:
        # GPU capacity is scarce: nodes go before their successors come, instead of two more per zone first.
        strategy = "MINIMAL" if self.spec.role == c.GPU_ROLE else "DEFAULT"
        return {"maxUnavailable": 1, "updateStrategy": strategy}

    def _node_labels(self) -> dict[str, str]:
        spec = self.spec
        ours = {c.POOL_LABEL: names.label_value(spec.pool_name)}
        if spec.role == c.GPU_ROLE:
            # NVIDIA's DRA driver runs where the second says so; the autoscaler waits for a GPU by the third.
            ours["nvidia.com/gpu.present"] = "true"
            if spec.gpu is not None:
                ours[c.GPU_LABEL] = names.label_value(spec.gpu.accelerator_type)
                ours["k8s.amazonaws.com/accelerator"] = names.label_value(spec.gpu.accelerator_type)
        if spec.fabric == c.FABRIC_EFA:
            ours["vpc.amazonaws.com/efa.present"] = "true"
        return {**spec.labels, **ours}

    def _taints(self) -> list[Manifest]:
        ours = [(c.GPU_TAINT, "true", "NoSchedule")] if self.spec.role == c.GPU_ROLE else []
        theirs = [(t.key, t.value, t.effect) for t in self.spec.taints]
        found = {(key, effect): value for key, value, effect in (*theirs, *ours)}
        return [
            {"key": key, "effect": _EFFECTS.get(effect, "NO_SCHEDULE"), **({"value": value} if value else {})}
            for (key, effect), value in sorted(found.items())
        ]


def _zone(mark: str) -> str:
    return mark.rpartition("-")[0]


def _is_arm(instance_type: str) -> bool:
    """Tell whether a type has one of AWS's own processors: a g after the generation, as in m7g.large."""
    family = instance_type.partition(".")[0]
    digits = [i for i, letter in enumerate(family) if letter.isdigit()]
    return bool(digits) and "g" in family[digits[-1] + 1 :].partition("-")[0]
