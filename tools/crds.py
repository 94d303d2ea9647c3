"""Download the CRDs that the schema tests judge against, as tools/crds.yaml names them.

Usage: python tools/crds.py FOLDER

A file whose content differs from its recorded SHA-256 is refused and not written: tests must judge against
what was reviewed. Files that are there and right are not fetched again.
"""

import hashlib
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

LISTING = Path(__file__).with_suffix(".yaml")
_HOST = "https://raw.githubusercontent.com"
_TIMEOUT = 30


def wanted() -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield (relative path, file entry, address) of every CRD file in the listing."""
    for project, source in yaml.safe_load(LISTING.read_text()).items():
        for file in source["files"]:
            ref, path = file.get("ref", source["ref"]), file.get("path", source["path"])
            name = file.get("from", file["name"])
            yield f"{project}/{file['name']}", file, f"{_HOST}/{source['repository']}/{ref}/{path}/{name}"


def cut(text: bytes, document: int | None) -> bytes:
    """Return one document of a YAML stream, text unchanged; all of it without a number."""
    if document is None:
        return text
    parts = [p for p in text.decode().split("\n---\n") if "kind: CustomResourceDefinition" in p]
    return parts[document].encode().removeprefix(b"---\n").rstrip(b"\n") + b"\n"


def right(content: bytes, file: Mapping[str, Any]) -> bool:
    """Tell whether the content is the one that was reviewed."""
    return hashlib.sha256(content).hexdigest() == file["sha256"]


def main(folder: Path) -> int:
    """Download what is missing; return the exit status."""
    faults = []
    for relative, file, address in wanted():
        target = folder / relative
        if target.is_file() and right(target.read_bytes(), file):
            continue
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT) as answer:  # fixed https host above
                content = cut(answer.read(), file.get("document"))
        except (urllib.error.URLError, TimeoutError, IndexError) as error:
            faults.append(f"{relative}: {address}: {error}")
            continue
        if not right(content, file):
            faults.append(f"{relative}: {address}: content differs from the recorded SHA-256")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
