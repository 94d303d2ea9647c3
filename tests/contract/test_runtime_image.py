"""The image that serves the function: its parts must fit each other, and what the tests run with."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from contract.xrds import ROOT

FOLDER = ROOT / "package" / "function"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
ROOTFS = (FOLDER / "rootfs.sh").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(r"(?m)^([a-z0-9-]+)==(\S+)$", (FOLDER / "constraints.txt").read_text())
}


def test_every_dependency_is_pinned_inside_its_range() -> None:
    for text in PROJECT["dependencies"]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(PINS[canonicalize_name(wanted.name)]), text


def test_nothing_is_pinned_that_only_a_command_or_a_test_needs() -> None:
    extras = [text for name in ("cli", "dev", "docs") for text in PROJECT["optional-dependencies"][name]]
    assert not {canonicalize_name(Requirement(text).name) for text in extras} & set(PINS)


def test_builder_and_runtime_are_one_python_and_one_that_the_project_takes() -> None:
    (packed,) = re.findall(r"(?m)^python=python(\S+)$", ROOTFS)
    assert f"python{packed} " in DOCKERFILE.split("FROM scratch")[0]
    assert re.findall(r"/usr/bin/python([0-9.]+)", DOCKERFILE) == [packed]
    (least,) = re.findall(r"^>=(3\.\d+)$", PROJECT["requires-python"])
    assert packed == least, "what the type checker and the oldest test run judge"


def test_the_user_is_a_number_other_than_root_and_has_a_name_in_the_image() -> None:
    (user,) = re.findall(r"(?m)^USER (\d+):\1$", DOCKERFILE)
    assert int(user) > 0
    assert f"modelplane:x:{user}:{user}:" in ROOTFS


def test_the_builder_is_given_every_source_and_no_other() -> None:
    copied = {
        path for line in re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", DOCKERFILE) for path in line.split()
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert "*" in ignored
    assert {path for path in copied if not path.startswith("package/function/")} == allowed - {
        "package/function"
    }
    assert all((ROOT / path).exists() for path in copied | allowed)
