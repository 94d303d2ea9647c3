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
    """Yield the requests of each claim: one where it can hold them all, as it cannot on a p5 node (8 + 32).

    A device class goes whole into one claim where it can. KAI allocates a pod's claims one after the other
    (pkg/scheduler/plugins/dynamicresources), so that one may take the devices another needs; within one claim
    it looks for a way to serve all. What a class beyond one claim needs, placement sees to (`match`).
    """
    part: list[Manifest] = []
    room = c.DEVICES_A_CLAIM
    for together in _together(requests):
        whole = sum(request.count for request in together)
        for at, request in enumerate(together):
            left = request.count
            while left > 0:
                least = whole if at == 0 and whole <= c.DEVICES_A_CLAIM else left
                if part and least > room:
                    yield part
                    part, room = [], c.DEVICES_A_CLAIM
                taken = min(left, room)
                part.append(_request(request, taken))
                left, room = left - taken, room - taken
    if part:
        yield part


def _together(requests: tuple[DeviceRequest, ...]) -> list[list[DeviceRequest]]:
    """Return the requests class by class, or all in their order where one claim holds them."""
    if sum(request.count for request in requests) <= c.DEVICES_A_CLAIM:
        return [list(requests)]
    classes: dict[str, list[DeviceRequest]] = {}
    for request in requests:
        classes.setdefault(request.device_class_name, []).append(request)
    return list(classes.values())


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
