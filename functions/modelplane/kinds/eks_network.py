"""EKSNetwork: the network of one EKS cluster, made by us or somebody else's, told zone by zone.

A composite of its own since a network for six zones alone is over sixty resources, and core applies one
after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import EKSNetworkSpec
from modelplane.clouds.eks import network, ranges, report, zones
from modelplane.clouds.eks.aws import Aws
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Inputs,
    InvalidSpecError,
    Kind,
    Plan,
    paths,
    specs,
)
from modelplane.facts import aws as facts
from modelplane.kinds import eks_network_status as network_status

READY = "NetworkReady"
PROVISIONING = "Provisioning"
UNSUITABLE = "UnsuitableNetwork"

_PRIVATE_KEY = network.subnet_key(network.PRIVATE, "")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The zones of a network.

    Attributes:
        zones: in the order of their slots.
        pending: how many are chosen only once AWS has said which zones the named ones are.
    """

    zones: Sequence[str]
    pending: int = 0


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a network."""
    spec = specs.parse(EKSNetworkSpec, inputs.spec, c.NETWORK_READY)
    label = paths.labels(inputs.composite).get(c.CLUSTER_LABEL)
    aws = Aws(
        spec.cluster_name,
        str(label or names.label_value(inputs.name)),
        spec.region,
        spec.credentials,
        spec.tags,
    )
    existing = spec.network.existing
    _refuse_other_vpc(inputs, existing is not None)
    if existing is not None:
        found = network.looks(aws, existing.vpc_id, existing.private_subnet_ids, existing.public_subnet_ids)
        return _plan(inputs, found, 0, network_status.existing_fault(inputs, spec))
    chosen = _zones(inputs, spec)
    layout = _layout(inputs, aws, spec, chosen)
    fault = network_status.same_zone(inputs) or network_status.refused_zone(inputs, chosen.zones)
    return _plan(inputs, layout.resources(), chosen.pending, fault, _in_use(inputs, layout))


def _refuse_other_vpc(inputs: Inputs, looks: bool) -> None:
    """Hold where a network of ours is to become somebody else's, or the reverse: nodes stand in the one."""
    ours = any(key.startswith((_PRIVATE_KEY, "route-")) for key in inputs.observed)
    theirs = any(key.startswith(network.look_key(network.PRIVATE, "")) for key in inputs.observed)
    if ours if looks else theirs:
        raise InvalidSpecError(
            c.NETWORK_READY,
            "spec.network.existing",
            "the cluster stands in another VPC and cannot move; restore it, or delete the cluster and create"
            " another",
        )


def _plan(
    inputs: Inputs, wanted: Sequence[Desired], pending: int, fault: str, kept: frozenset[str] = frozenset()
) -> Plan:
    waiting = [r.key for r in wanted if not r.ready.holds(inputs.observed.get(r.key))]
    if fault:
        state = Condition(c.NETWORK_READY, False, UNSUITABLE, fault)
    elif waiting or pending:
        said = (
            report.first_failure(inputs.observed, waiting)
            or f"waiting for {', '.join(waiting[:3]) or 'the remaining zones'}"
        )
        state = Condition(c.NETWORK_READY, False, PROVISIONING, said)
    else:
        failed = report.first_failure(inputs.observed, sorted(inputs.observed))
        state = Condition(c.NETWORK_READY, True, READY, failed)
    strays = _strays(inputs)
    subnets = [r.key for r in wanted if r.manifest.get("kind") == "Subnet"]
    return Plan(
        resources=wanted,
        status=network_status.fields(inputs, subnets, pending),
        conditions=[state],
        events=[Event(fault, warning=True)] if fault else [],
        keep=kept | (strays - {r.key for r in wanted}),
        ready=False if fault or pending else None,
    )


def _strays(inputs: Inputs) -> frozenset[str]:
    """Return what stands of subnets, wanted or not, with ranges and routes: pods have addresses there."""
    found = {
        key
        for key, seen in inputs.observed.items()
        if key.startswith("subnet-") and _id_of(seen) not in facts.refused_zones()
    }
    ways = {f"route-table-association-{key.removeprefix('subnet-')}" for key in found}
    return frozenset(found | (ways | {"secondary-range"}) & inputs.observed.keys())


def _zones(inputs: Inputs, spec: EKSNetworkSpec) -> Chosen:
    """Return the zones: those given, else those of the pools and as many more as are usual."""
    explicit = list(dict.fromkeys(spec.network.zones or spec.pool_zones))
    field = "spec.network.zones" if spec.network.zones else "spec.poolZones"
    for zone in explicit:
        if why := zones.fault(zone, spec.region):
            raise InvalidSpecError(c.NETWORK_READY, field, why)
    # What has subnets stays, whatever is named: nodes stand there, and go out by its routes.
    recorded = sorted(
        key.removeprefix(_PRIVATE_KEY)
        for key in inputs.observed
        if key.startswith(_PRIVATE_KEY)
        and key.removeprefix(_PRIVATE_KEY) not in explicit
        and _id_of(inputs.observed[key]) not in facts.refused_zones()
    )
    found = [*explicit, *recorded]
    if spec.network.zones:
        return Chosen(found)
    usual = len(spec.networking.subnet_cidrs) if spec.networking else zones.USUAL
    missing = usual - len(found)
    if missing <= 0:
        return Chosen(found)
    named = {zone: _zone_id(inputs, zone) for zone in found if not zones.is_id(zone)}
    if not all(named.values()):
        # Which zone a name means differs by account: only AWS can say which others are left.
        return Chosen(found, missing)
    left = [z for z in zones.defaults(spec.region) if z not in found and z not in named.values()]
    found += left[:missing]
    if len(found) < zones.FEWEST:
        raise InvalidSpecError(
            c.NETWORK_READY,
            "spec.network.zones",
            f"region {spec.region} is not in our table of zones: name at least {zones.FEWEST} by name or ID",
        )
    return Chosen(found)


def _zone_id(inputs: Inputs, zone: str) -> str:
    return _id_of(inputs.observed.get(network.subnet_key(network.PRIVATE, zone)))


def _id_of(subnet: Mapping[str, Any] | None) -> str:
    return paths.text(subnet, "status", "atProvider", "availabilityZoneId")


def _layout(inputs: Inputs, aws: Aws, spec: EKSNetworkSpec, chosen: Chosen) -> network.Layout:
    net, old = spec.network, spec.networking
    cidr = old.vpc_cidr if old else net.cidr
    field = "spec.networking" if old else "spec.network.cidr"
    try:
        vpc = ranges.parse(cidr)
        tiers = _given(vpc, old.subnet_cidrs) if old else _split(vpc)
    except ranges.RangeError as error:
        raise InvalidSpecError(c.NETWORK_READY, field, str(error)) from None
    room = len(tiers[network.PRIVATE])
    if len(chosen.zones) > room:
        message = (
            f"{cidr} has room for {room} zones and {len(chosen.zones)} are needed; name fewer, or widen it"
        )
        raise InvalidSpecError(c.NETWORK_READY, field, message)
    if net.secondary_cidr:
        tiers.update(_secondary(vpc, net.secondary_cidr, net.pods_in_secondary))
    taken = {zone: _slot(inputs, zone, tiers[network.PRIVATE]) for zone in chosen.zones}
    free = (i for i in range(room) if i not in taken.values())
    slots = {zone: next(free) if slot is None else slot for zone, slot in taken.items()}
    places = [
        network.Place(zone, {tier: found[slots[zone]] for tier, found in tiers.items() if found})
        # A single gateway stays where it is: all nodes go out by it, whatever zones are named later.
        for zone in sorted(chosen.zones, key=lambda zone: f"nat-gateway-{zone}" not in inputs.observed)
    ]
    return network.Layout(aws, cidr, net.secondary_cidr, net.nat, places)


def _slot(inputs: Inputs, zone: str, private: Sequence[str]) -> int | None:
    """Return the slot a zone has had so far: a zone that comes later must not move it."""
    subnet = inputs.observed.get(network.subnet_key(network.PRIVATE, zone))
    cidr = paths.text(subnet, "spec", "forProvider", "cidrBlock")
    return private.index(cidr) if cidr in private else None


def _split(vpc: IPv4Network) -> dict[str, list[str]]:
    count = min(ranges.slots(vpc), zones.MOST)
    return {
        network.PUBLIC: [ranges.public(vpc, i) for i in range(count)],
        network.PRIVATE: [ranges.private(vpc, i) for i in range(count)],
    }


def _given(vpc: IPv4Network, public: Sequence[str]) -> dict[str, list[str]]:
    """Return v0.4's public ranges and private ones beside them; there they could overlap."""
    taken: list[IPv4Network] = []
    for text in public:
        try:
            subnet = ip_network(text)
        except ValueError as error:
            raise ranges.RangeError(f"subnetCidrs: {error}") from None
        if not isinstance(subnet, IPv4Network) or not subnet.subnet_of(vpc):
            raise ranges.RangeError(f"subnetCidrs: {text} is not inside vpcCidr {vpc}")
        if clash := next((x for x in taken if x.overlaps(subnet)), None):
            raise ranges.RangeError(f"subnetCidrs: {text} overlaps {clash}")
        taken.append(subnet)
    return {network.PUBLIC: list(public), network.PRIVATE: ranges.beside(vpc, taken, len(public))}


def _secondary(vpc: IPv4Network, text: str, with_pods: bool) -> dict[str, list[str]]:
    try:
        second = ranges.parse(text)
        if second.overlaps(vpc):
            raise ranges.RangeError(f"{text} overlaps the VPC's own range {vpc}; choose another")
    except ranges.RangeError as error:
        raise InvalidSpecError(c.NETWORK_READY, "spec.network.secondaryCidr", str(error)) from None
    return {network.PODS: [ranges.pods(second, i) for i in range(zones.MOST)]} if with_pods else {}


def _in_use(inputs: Inputs, layout: network.Layout) -> frozenset[str]:
    """Return NAT gateways that are no longer wanted and that a private route still goes through.

    Core deletes what is left out before it applies the rest: the nodes would lose their way out.
    """
    wanted = layout.gateways()
    if not wanted:
        return frozenset()
    routed = {
        paths.text(seen, "status", "atProvider", "natGatewayId")
        for key, seen in inputs.observed.items()
        if key.startswith("route-private-")
    }
    found: set[str] = set()
    for key, seen in inputs.observed.items():
        zone = key.removeprefix("nat-gateway-")
        if zone != key and zone not in wanted and paths.text(seen, "status", "atProvider", "id") in routed:
            found |= {key, f"nat-address-{zone}"}
    return frozenset(found)


KIND = Kind(c.INFRA_API, c.EKS_NETWORK, compose, (c.NETWORK_READY,))
