"""Reading our own specs: an error names the field and never what stands in it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field

from modelplane.api.base import Model
from modelplane.core import InvalidSpecError, specs


class Pool(Model):
    node_count: int = 1
    mode: Literal["Spot", "OnDemand"] = "OnDemand"


class Spec(Model):
    class_name: str
    node_pools: tuple[Pool, ...] = ()
    limit: int = Field(default=1, le=8)


@pytest.mark.parametrize(
    ("spec", "want", "reason"),
    [
        ({"className": "a"}, Spec(class_name="a"), "defaults fill in"),
        ({"className": "a", "limit": 3.0}, Spec(class_name="a", limit=3), "numbers arrive as floats"),
        ({"className": "a", "newer": {"x": 1}}, Spec(class_name="a"), "a newer CRD may hold more"),
        (
            {"className": "a", "nodePools": [{"nodeCount": 2}]},
            Spec(class_name="a", node_pools=(Pool(node_count=2),)),
            "nested, in the wire's spelling",
        ),
    ],
)
def test_a_spec_becomes_a_model(spec: dict[str, Any], want: Spec, reason: str) -> None:
    assert specs.parse(Spec, spec, "Built") == want, reason


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.className: ", "missing"),
        ({"className": ["s3cret"]}, "spec.className: ", "of another type"),
        ({"className": "a", "limit": 9}, "spec.limit: ", "beyond its limit"),
        ({"className": "a", "limit": 1.5}, "spec.limit: ", "no whole number"),
        (
            {"className": "a", "nodePools": [{}, {"nodeCount": "s3cret"}]},
            "spec.nodePools[1].nodeCount: ",
            "in a list",
        ),
        (
            {"className": "a", "nodePools": [{"mode": "s3cret"}]},
            "spec.nodePools[0].mode: ",
            "not in the enum",
        ),
        ({"className": "a", "nodePools": "s3cret"}, "spec.nodePools: ", "no list"),
    ],
)
def test_an_invalid_spec_names_the_field_and_no_value(spec: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        specs.parse(Spec, spec, "Built")
    assert (refused.value.condition, refused.value.reason) == ("Built", "InvalidSpec")
    assert refused.value.message.startswith(field), reason
    assert "s3cret" not in refused.value.message
    assert refused.value.__cause__ is None, "the cause would carry the value into a traceback"


def test_a_part_of_a_spec_is_named_from_its_own_root() -> None:
    with pytest.raises(InvalidSpecError, match=r"^spec\.template\.nodeCount: "):
        specs.parse(Pool, {"nodeCount": "x"}, "Built", root="spec.template")
