"""Which availability zones a cluster stands in, and whether EKS takes them.

A zone's name (us-west-2a) means another zone in each account, its ID (usw2-az1) does not; both are admitted.
"""

import re
from collections.abc import Sequence

from modelplane.facts import aws

_ID = re.compile(r"[a-z]{3,5}[0-9]-az[0-9]+")
FEWEST, MOST, USUAL = 2, 6, 3


def is_id(zone: str) -> bool:
    """Tell whether it is a zone's ID, not its name."""
    return _ID.fullmatch(zone) is not None


def fault(zone: str, region: str) -> str:
    """Return why a cluster in the region cannot use the zone; empty where nothing is known against it."""
    if is_id(zone):
        known = aws.regions().get(region)
        if zone in aws.refused_zones():
            return f"{zone} takes no subnets of an EKS cluster; choose another zone"
        if known and zone.partition("-az")[0] != known.prefix:
            return f"{zone} is not in region {region}, whose zone IDs begin with {known.prefix}-az"
        return ""
    if not re.fullmatch(re.escape(region) + "[a-z]", zone):
        return f"{zone} is no zone of region {region}; write {region} and a letter, or a zone ID"
    return ""


def defaults(region: str) -> Sequence[str]:
    """Return the IDs of zones that EKS takes, best first; none where the region is not in the table."""
    known = aws.regions().get(region)
    return known.zones if known else ()
