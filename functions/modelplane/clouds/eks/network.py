"""A cluster's VPC: subnets, gateways and routes per zone, or a look at one that somebody else runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane.clouds.eks.aws import Aws
from modelplane.core.builders import OBSERVE_ONLY
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired

PUBLIC, PRIVATE, PODS = "public", "private", "pods"
VPC = "vpc"
PER_ZONE, NO_NAT = "PerZone", "None"
TIER_LABEL = c.SUBNET_TIER_LABEL

_EVERYWHERE = "0.0.0.0/0"
# Load balancer controllers find subnets by these tags (EKS User Guide, network-load-balancing).
_ROLE_TAGS = {
    PUBLIC: {"kubernetes.io/role/elb": "1"},
    PRIVATE: {"kubernetes.io/role/internal-elb": "1"},
    PODS: {},
}


@dataclass(frozen=True, slots=True)
class Place:
    """One zone of the network.

    Attributes:
        zone: its name or ID.
        ranges: of its subnets, by tier; a tier without a range has no subnet.
    """

    zone: str
    ranges: Mapping[str, str]


def subnet_key(tier: str, zone: str) -> str:
    """Return the composed key of a subnet of our own."""
    return f"subnet-{tier}-{zone}"


def look_key(tier: str, subnet_id: str) -> str:
    """Return the composed key of a look at a subnet of somebody else's."""
    return f"look-{tier}-{subnet_id}"


@dataclass(frozen=True, slots=True)
class Layout:
    """A network of our own.

    Attributes:
        aws: the cluster's envelope.
        cidr: range of the VPC.
        secondary: second range; empty for none.
        nat: `PerZone`, `Single` or `None`.
        places: its zones, the one of a single NAT gateway first.
    """

    aws: Aws
    cidr: str
    secondary: str
    nat: str
    places: Sequence[Place]

    def resources(self) -> list[Desired]:
        """Return all of it. References order the creation; AWS refuses what would go too early."""
        found = [self._vpc(), self._closed_group(), *self._public_side()]
        if self.secondary:
            found.append(self._second_range())
        for place in self.places:
            found += [self._subnet(tier, place) for tier in place.ranges]
            found += self._private_side(place)
        return found

    def gateways(self) -> list[str]:
        """Return the zones that have a NAT gateway."""
        zones = [place.zone for place in self.places]
        if self.nat == NO_NAT:
            return []
        return zones if self.nat == PER_ZONE else zones[:1]

    def _ec2(self, kind: str, key: str, parameters: Mapping[str, Any], **kwargs: Any) -> Desired:
        return Desired(key, self.aws.resource(c.EC2_API, kind, key, parameters, **kwargs))

    def _ref(self, key: str, **policy: str) -> Manifest:
        return {"name": self.aws.name(key), **({"policy": policy} if policy else {})}

    def _vpc(self) -> Desired:
        # Nodes cannot register without both DNS settings (EKS User Guide, network-reqs).
        return self._ec2(
            "VPC", VPC, {"cidrBlock": self.cidr, "enableDnsHostnames": True, "enableDnsSupport": True}
        )

    def _closed_group(self) -> Desired:
        # The group every VPC is born with admits all its members; without rules it admits nothing.
        return self._ec2("DefaultSecurityGroup", "default-security-group", {"vpcIdRef": self._ref(VPC)})

    def _second_range(self) -> Desired:
        parameters = {"cidrBlock": self.secondary, "vpcIdRef": self._ref(VPC)}
        return self._ec2("VPCIPv4CidrBlockAssociation", "secondary-range", parameters)

    def _public_side(self) -> Iterator[Desired]:
        yield self._ec2("InternetGateway", "internet-gateway", {"vpcIdRef": self._ref(VPC)})
        yield self._ec2("RouteTable", "route-table-public", {"vpcIdRef": self._ref(VPC)})
        yield self._ec2(
            "Route",
            "route-public",
            {
                "destinationCidrBlock": _EVERYWHERE,
                "gatewayIdRef": self._ref("internet-gateway"),
                "routeTableIdRef": self._ref("route-table-public"),
            },
        )

    def _subnet(self, tier: str, place: Place) -> Desired:
        # EC2 takes either; the ID is not filled in late, so the other never appears beside it.
        where = "availabilityZoneId" if "-az" in place.zone else "availabilityZone"
        parameters: Manifest = {
            where: place.zone,
            "cidrBlock": place.ranges[tier],
            "vpcIdRef": self._ref(VPC),
        }
        if tier == PUBLIC:
            parameters["mapPublicIpOnLaunch"] = True
        key = subnet_key(tier, place.zone)
        return Desired(
            key,
            self.aws.resource(
                c.EC2_API,
                "Subnet",
                key,
                parameters,
                labels={c.ZONE_LABEL: place.zone, TIER_LABEL: tier},
                tags=_ROLE_TAGS[tier],
            ),
            # AWS takes no subnet of a range that the VPC does not have yet.
            after=("secondary-range",) if tier == PODS else (),
        )

    def _private_side(self, place: Place) -> Iterator[Desired]:
        zone, table = place.zone, f"route-table-private-{place.zone}"
        yield self._association(PUBLIC, zone, "route-table-public")
        yield self._ec2("RouteTable", table, {"vpcIdRef": self._ref(VPC)}, labels={c.ZONE_LABEL: zone})
        for tier in (PRIVATE, PODS):
            if tier in place.ranges:
                yield self._association(tier, zone, table)
        gateways = self.gateways()
        if zone in gateways:
            yield from self._gateway(zone)
        if gateways:
            gateway = zone if zone in gateways else gateways[0]
            yield self._ec2(
                "Route",
                f"route-private-{zone}",
                {
                    "destinationCidrBlock": _EVERYWHERE,
                    # A reference is resolved once unless it says so, and `nat` may change.
                    "natGatewayIdRef": self._ref(f"nat-gateway-{gateway}", resolve="Always"),
                    "routeTableIdRef": self._ref(table),
                },
            )

    def _association(self, tier: str, zone: str, table: str) -> Desired:
        parameters = {
            "routeTableIdRef": self._ref(table),
            "subnetIdRef": self._ref(subnet_key(tier, zone)),
        }
        return self._ec2("RouteTableAssociation", f"route-table-association-{tier}-{zone}", parameters)

    def _gateway(self, zone: str) -> Iterator[Desired]:
        yield self._ec2("EIP", f"nat-address-{zone}", {"domain": "vpc"})
        key = f"nat-gateway-{zone}"
        parameters = {
            "allocationIdRef": self._ref(f"nat-address-{zone}"),
            "connectivityType": "public",
            "subnetIdRef": self._ref(subnet_key(PUBLIC, zone)),
        }
        # A public one is created only where its subnet reaches the internet.
        resource = self.aws.resource(c.EC2_API, "NATGateway", key, parameters, labels={c.ZONE_LABEL: zone})
        yield Desired(key, resource, after=("route-public", f"route-table-association-{PUBLIC}-{zone}"))


def looks(aws: Aws, vpc: str, private: Sequence[str], public: Sequence[str]) -> list[Desired]:
    """Return observe-only looks at somebody else's VPC and subnets: nothing there is ever changed."""
    found = [_look(aws, "VPC", VPC, vpc, {})]
    for tier, subnets in ((PRIVATE, private), (PUBLIC, public)):
        found += [_look(aws, "Subnet", look_key(tier, x), x, {TIER_LABEL: tier}) for x in subnets]
    return found


def _look(aws: Aws, kind: str, key: str, found: str, labels: Mapping[str, str]) -> Desired:
    return Desired(
        key,
        aws.resource(c.EC2_API, kind, key, {}, labels=labels, policies=OBSERVE_ONLY, external_name=found),
    )
