"""Device claims: a ResourceClaimTemplate per claiming member, so that every pod gets a claim of its own.

KAI does not schedule the pods of a gang that share one claim (KAI-Scheduler #1217).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import DeviceRequest, Engine, Member
from modelplane.core.paths import Manifest
from modelplane.gangs.site import Site

KEY_PREFIX = "resource-claim-"
# AllocationResultsMaxSize (Kubernetes, pkg/apis/resource/types.go): a claim for more can never be allocated,
# and a whole p5 node is 8 GPUs and 32 EFA interfaces.
_DEVICES_A_CLAIM = 32


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a member's pods.

    Attributes:
        key: composition resource name of its template.
        pod_name: name of the claim inside the pod.
        template: name of the ResourceClaimTemplate.
        manifest: the ResourceClaimTemplate.
    """

    key: str
    pod_name: str
    template: str
    manifest: Manifest


def claims(site: Site, engine: Engine, member: Member) -> list[Claim]:
    """Return the member's claims; none for a member that claims nothing."""
    return [
        _claim(site, engine, member, part, requests)
        for part, requests in enumerate(_parts(member.device_requests), start=1)
    ]


def _claim(site: Site, engine: Engine, member: Member, part: int, requests: list[Manifest]) -> Claim:
    role = member.role.lower() if part == 1 else f"{member.role.lower()}-{part}"
    spec = {"spec": {"devices": {"requests": requests}}}
    # The API server refuses any change of a template's spec, so a changed one is a new object, under a new
    # key: under the same key the provider would leave the old one on the cluster.
    shape = names.digest(json.dumps(spec, sort_keys=True))
    template = names.claim_template(site.replica, engine.name, role, shape)
    manifest: Manifest = {
        "apiVersion": c.DRA_API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": template, "namespace": site.namespace},
        "spec": spec,
    }
    pod_name = c.DEVICES_CLAIM if part == 1 else f"{c.DEVICES_CLAIM}-{part}"
    return Claim(f"{KEY_PREFIX}{engine.name}-{role}.{shape}", pod_name, template, manifest)


def _parts(requests: tuple[DeviceRequest, ...]) -> Iterator[list[Manifest]]:
    part: list[Manifest] = []
    room = _DEVICES_A_CLAIM
    for request in requests:
        left = request.count
        while left > 0:
            # A request goes whole into a claim where it can: its devices may have to be alike.
            if part and left > room:
                yield part
                part, room = [], _DEVICES_A_CLAIM
            taken = min(left, room)
            part.append(_request(request, taken))
            left, room = left - taken, room - taken
    if part:
        yield part


def _request(request: DeviceRequest, count: int) -> Manifest:
    exactly: Manifest = {
        "deviceClassName": request.device_class_name,
        # Both are written by the API server where absent.
        "allocationMode": "ExactCount",
        "count": count,
    }
    if request.selectors:
        exactly["selectors"] = [{"cel": {"expression": s.cel}} for s in request.selectors]
    return {"name": request.name, "exactly": exactly}
