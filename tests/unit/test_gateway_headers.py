"""What a client cannot steer: headers that name a pod or a host are the cluster's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import judges
from modelplane import contracts as c
from modelplane.facts import versions
from modelplane.stacks import join
from modelplane.stacks.component import Context
from modelplane.stacks.components import gateway_headers


def test_steering_headers_are_dropped_before_the_picker_sets_its_own(crds: Path) -> None:
    (document,) = gateway_headers.COMPONENT.documents(Context(release=versions.newest()))
    spec = document.manifest["spec"]
    assert spec["targetRefs"][0]["name"] == c.CLUSTER_GATEWAY
    assert document.manifest["metadata"]["namespace"] == c.SYSTEM_NAMESPACE, (
        "a policy reaches its own namespace only"
    )
    early = spec["headers"]["earlyRequestHeaders"]["remove"]
    assert {"x-gateway-destination-endpoint", "x-prefiller-host-port"} <= set(early)
    assert judges.problems(document.manifest, crds) == []


@pytest.mark.parametrize("stack", list(join.STACKS))
def test_no_gateway_stands_before_they_are_dropped(stack: str) -> None:
    keys = [x.key for x in join.stack(stack)]
    assert keys.index("gateway-headers") < keys.index("gateway")
    assert "gateway-headers" in join.find("gateway").needs
