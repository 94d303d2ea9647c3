"""The tables of AWS: what is transcribed holds together, and a user's own output makes more of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from modelplane.cli.facts import facts
from modelplane.facts import aws, describe

TYPES = aws.instance_types()

# EFA interfaces by type, and whether the first network card has one (EC2 User Guide, efa-acc-inst-types).
EFA = [
    ("p4d.24xlarge", 4, True),
    ("p5.48xlarge", 32, True),
    ("p5en.48xlarge", 16, True),
    ("p6-b200.48xlarge", 8, True),
    ("p6-b300.48xlarge", 16, False),
    ("p6e-gb200.36xlarge", 4, False),
    ("g6e.48xlarge", 4, True),
    ("g7e.24xlarge", 2, True),
    ("g6.8xlarge", 1, True),
    ("g6.4xlarge", 0, False),
    ("g5.48xlarge", 1, True),
]


@pytest.mark.parametrize(("name", "count", "first"), EFA, ids=[x[0] for x in EFA])
def test_efa_interfaces_are_listed_card_by_card(name: str, count: int, first: bool) -> None:
    cards = TYPES[name].efa_cards
    assert len(set(cards)) == len(cards) == count
    assert (0 in cards) is first


def test_every_family_of_the_issue_is_there() -> None:
    families = {name.partition(".")[0] for name in TYPES}
    assert families >= {"p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "g5", "g6", "g6e", "g7e"}


@pytest.mark.parametrize("region", aws.regions())
def test_a_region_has_zones_enough_and_none_that_eks_refuses(region: str) -> None:
    known = aws.regions()[region]
    assert len(known.zones) >= 2
    assert all(zone.startswith(f"{known.prefix}-az") for zone in (*known.zones, *known.refused))
    assert not set(known.zones) & aws.refused_zones()


def test_eks_refuses_the_three_zones_it_names() -> None:
    assert aws.refused_zones() == {"use1-az3", "usw1-az2", "cac1-az3"}


def described(name: str = "p9.large", efa: int = 4, cards: int = 4, **over: Any) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": 96},
        "MemoryInfo": {"SizeInMiB": 1179648},
        "InstanceStorageInfo": {"TotalSizeInGB": 8000},
        "GpuInfo": {
            "Gpus": [{"Name": "X1", "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": 9}}]
        },
        "NetworkInfo": {
            "NetworkPerformance": "400 Gigabit",
            "NetworkCards": [{"NetworkCardIndex": n} for n in range(cards)],
            "EfaSupported": efa > 0,
            "EfaInfo": {"MaximumEfaInterfaces": efa},
        },
        **over,
    }


def run(tmp_path: Path, body: object) -> tuple[int, Any, str]:
    file = tmp_path / "described.json"
    file.write_text(body if isinstance(body, str) else json.dumps(body))
    result = CliRunner().invoke(facts, [str(file)])
    return result.exit_code, yaml.safe_load(result.stdout), result.stderr


def test_a_described_type_becomes_an_entry_the_table_can_read(tmp_path: Path) -> None:
    code, found, said = run(tmp_path, {"InstanceTypes": [described()]})
    assert (code, said) == (0, "")
    assert found["instanceTypes"]["p9.large"] == {
        "gpu": {"count": 8, "model": "X1", "memoryMib": 9},
        "vcpus": 96,
        "memoryGib": 1152,
        "nvmeGb": 8000,
        "networkGbps": 400,
        "networkCards": 4,
        "efa": {"cards": [0, 1, 2, 3]},
    }


LAYOUTS = [
    ("none", 0, 1, None, 0),
    ("all cards", 16, 16, list(range(16)), 0),
    ("AWS does not say which of them, as for p6-b300", 16, 17, None, 1),
    ("nor for p6e", 4, 17, None, 1),
    ("the first of two or the second", 1, 2, None, 1),
]


@pytest.mark.parametrize(("reason", "efa", "cards", "wanted", "code"), LAYOUTS, ids=[x[0] for x in LAYOUTS])
def test_cards_with_efa_are_never_guessed(
    tmp_path: Path, reason: str, efa: int, cards: int, wanted: list[int] | None, code: int
) -> None:
    status, found, said = run(tmp_path, {"InstanceTypes": [described(efa=efa, cards=cards)]})
    assert status == code, reason
    assert found["instanceTypes"]["p9.large"].get("efa", {}).get("cards") == wanted
    assert ("by hand" in said) is bool(code)


BAD = [
    ("not JSON", "{", "is not JSON"),
    ("a list", [], "has no list InstanceTypes"),
    ("no GPUs", {"InstanceTypes": [{"InstanceType": "m5.large"}]}, "no instance type with NVIDIA GPUs"),
    ("junk inside", {"InstanceTypes": [None, 3, {"InstanceType": 7}]}, "no instance type with NVIDIA GPUs"),
]


@pytest.mark.parametrize(("reason", "body", "said"), BAD, ids=[x[0] for x in BAD])
def test_what_is_no_description_is_refused_with_the_reason(
    tmp_path: Path, reason: str, body: object, said: str
) -> None:
    code, _, err = run(tmp_path, body)
    assert code == 3, reason
    assert said in err


def test_an_entry_reads_back_as_the_type_it_describes() -> None:
    """The table's own reader, over a description with all that AWS says of a p5.48xlarge."""
    body = described("p5.48xlarge", efa=32, cards=32, InstanceStorageInfo={"TotalSizeInGB": 30400})
    made = describe.convert({"InstanceTypes": [body]}).entries["p5.48xlarge"]
    assert aws.instance("p5.48xlarge", made) == TYPES["p5.48xlarge"]


def test_a_type_that_is_known_already_is_named(tmp_path: Path) -> None:
    _, _, said = run(tmp_path, {"InstanceTypes": [described("p5.48xlarge")]})
    assert "p5.48xlarge: is in the table already" in said
