"""What an EKSNetwork says of itself: subnets and zones as AWS tells them, and what is wrong there."""

from collections.abc import Mapping, Sequence

from modelplane.api.eks import EKSNetworkSpec
from modelplane.clouds.eks import network, zones
from modelplane.core import Inputs, Manifest, keep, paths
from modelplane.facts import aws


def existing_fault(inputs: Inputs, spec: EKSNetworkSpec) -> str:
    existing = spec.network.existing
    if existing is None:
        return ""
    for field in ("enableDnsSupport", "enableDnsHostnames"):
        if paths.at(inputs.observed.get(network.VPC), "status", "atProvider", field) is False:
            return (
                f"spec.network.existing.vpcId: {existing.vpc_id} has {field} off and nodes could not"
                " register; switch it on"
            )
    private = [e for e in _subnets(inputs) if e["tier"] == network.PRIVATE]
    for subnet in private:
        found = paths.text(
            inputs.observed.get(network.look_key(network.PRIVATE, subnet["id"])),
            "status",
            "atProvider",
            "vpcId",
        )
        if found and found != existing.vpc_id:
            return (
                f"spec.network.existing.privateSubnetIds: {subnet['id']} is in {found}, not in"
                f" {existing.vpc_id}; correct either"
            )
    if refused := [e for e in private if e["zoneId"] in aws.refused_zones()]:
        return (
            f"spec.network.existing.privateSubnetIds: {refused[0]['id']} is in {refused[0]['zoneId']}, which"
            " takes no subnets of an EKS cluster; name one of another zone"
        )
    complete = len(private) == len(existing.private_subnet_ids)
    if complete and len({e["zoneId"] or e["zone"] for e in private}) < zones.FEWEST:
        return (
            "spec.network.existing.privateSubnetIds: all are in one zone and EKS asks for two; add one of"
            " another zone"
        )
    return ""


def same_zone(inputs: Inputs) -> str:
    seen: Mapping[str, str] = {}
    for entry in (e for e in _subnets(inputs) if e["tier"] == network.PRIVATE and e["zoneId"]):
        if other := seen.get(entry["zoneId"]):
            return (
                f"spec.network.zones: {other} and {entry['zone']} are one zone, {entry['zoneId']}, in this"
                " account; name each once"
            )
        seen = {**seen, entry["zoneId"]: entry["zone"]}
    return ""


def refused_zone(inputs: Inputs, named: Sequence[str]) -> str:
    """Return which named zone turned out to be one that EKS refuses: names differ by account."""
    for entry in _subnets(inputs):
        if entry["zoneId"] in aws.refused_zones() and entry["zone"] in named:
            return (
                f"spec.network.zones: {entry['zone']} is {entry['zoneId']} in this account, which takes no"
                " subnets of an EKS cluster; name another zone, here or in the pool that names it"
            )
    return ""


def _subnets(inputs: Inputs) -> list[dict[str, str]]:
    """Return what AWS has said of the subnets, those for pods included."""
    found = []
    for key, seen in sorted(inputs.observed.items()):
        tier = paths.labels(seen).get(network.TIER_LABEL)
        at = paths.mapping(seen, "status", "atProvider")
        subnet, name, zone_id = (paths.text(at, k) for k in ("id", "availabilityZone", "availabilityZoneId"))
        asked = key.removeprefix(network.subnet_key(str(tier), "")) if key.startswith("subnet-") else ""
        if isinstance(tier, str) and subnet and (asked or name or zone_id):
            found.append(
                {
                    "id": subnet,
                    "tier": tier,
                    "zone": asked or name or zone_id,
                    "name": name,
                    "zoneId": zone_id,
                }
            )
    return found


def fields(inputs: Inputs, wanted: Sequence[str], pending: int) -> Manifest:
    """Return the status; a subnet that is not told of in this pass stays as it was told last.

    The first time all are told at once: whoever builds on a part would take it for the whole.
    """
    last = keep.kept_status(inputs.composite)
    told = {
        entry["id"]: {k: v for k, v in entry.items() if v}
        for entry in _subnets(inputs)
        if entry["zoneId"] not in aws.refused_zones()
    }
    if not paths.items(last, "subnets") and (pending or len(told) < len(wanted)):
        told = {}
    for entry in paths.mappings(last, "subnets"):
        if subnet := paths.text(entry, "id"):
            told.setdefault(subnet, {k: v for k, v in entry.items() if isinstance(v, str)})
    vpc = paths.text(inputs.observed.get(network.VPC), "status", "atProvider", "id")
    found: Manifest = {
        "vpcId": vpc or paths.text(last, "vpcId"),
        "subnets": [told[key] for key in sorted(told)],
    }
    return {key: value for key, value in found.items() if value}
