"""Staging from a registry: a real HTTP server on loopback, layers of every kind, and hostile ones."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import staging as s
from modelplane.staging.oci import Image
from modelplane.staging.outcome import Failure
from modelplane.staging.registry import Reference, Registry
from modelplane.staging.volume import Volume

TAR = "application/vnd.oci.image.layer.v1.tar"
REF = "registry.example.org/models/small:v1"
AUTH = base64.b64encode(b"me:s3cret").decode()
DOCKER = json.dumps({"auths": {"registry.example.org": {"auth": AUTH}}})


@pytest.fixture
def server() -> Iterator[s.Server]:
    with s.serving(s.Server()) as found:
        yield found


def image(server: s.Server, root: Path, ref: str = REF, auth: str = "") -> Image:
    registry = Registry(Reference.parse(ref), auth, server.url)
    return Image(s.env(root, "OCI", ref), Volume(root, "id1"), registry)


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and not p.is_symlink()
    }


def test_layers_are_unpacked_in_order_and_a_later_one_wins(server: s.Server, tmp_path: Path) -> None:
    first = s.tar({"models/config.json": b"{}", "models/old": b"x", "tmp/y": b"y", "tmp/z": b"z"})
    second = s.tar(
        {"models/.wh.old": b"", "models/w": b"weights", "tmp/.wh..wh..opq": b"", "tmp/a": b"a"}, packed=True
    )
    layers = [server.layer(first, TAR), server.layer(second, f"{TAR}+gzip")]
    digest = server.manifest("v1", {"layers": layers})
    source = image(server, tmp_path)
    folder, revision = source.fetch()
    assert revision == digest, "a tag moves; the digest of what it meant does not"
    assert files(folder) == {"models/config.json": b"{}", "models/w": b"weights", "tmp/a": b"a"}
    assert (folder / "models" / "w").stat().st_mode & 0o777 == 0o644, "engines run as another user"
    assert source.progress()[0] == source.progress()[1] == sum(x["size"] for x in layers)
    assert not (tmp_path / ".modelplane" / "scratch" / "id1").exists()


def test_named_files_become_files(server: s.Server, tmp_path: Path) -> None:
    layers = [
        server.layer(b"{}", "application/json", **{"org.opencontainers.image.title": "config.json"}),
        server.layer(
            b"ww", "application/vnd.cncf.model.weight.v1.raw", **{"org.cncf.model.filepath": "sub/w.bin"}
        ),
    ]
    server.manifest("v1", {"layers": layers})
    assert files(image(server, tmp_path).fetch()[0]) == {"config.json": b"{}", "sub/w.bin": b"ww"}


def test_an_index_gives_the_manifest_for_linux_on_amd64(server: s.Server, tmp_path: Path) -> None:
    manifests = []
    for arch in ("arm64", "amd64"):
        layer = server.layer(s.tar({arch: b"x"}), TAR)
        found = server.manifest(arch, {"layers": [layer]})
        manifests.append({"digest": found, "platform": {"os": "linux", "architecture": arch}})
    index = server.manifest("v1", {"manifests": manifests})
    folder, revision = image(server, tmp_path).fetch()
    assert files(folder) == {"amd64": b"x"}
    assert revision == index


def test_a_broken_download_goes_on_where_it_stopped(server: s.Server, tmp_path: Path) -> None:
    data = s.tar({"w": b"0123456789" * 100})
    server.manifest("v1", {"layers": [server.layer(data, TAR)]})
    server.cut = 700
    with pytest.raises(Failure) as failed:
        image(server, tmp_path).fetch()
    assert failed.value.hopeless is False
    assert files(image(server, tmp_path).fetch()[0]) == {"w": b"0123456789" * 100}
    assert [r for _, _, r in server.asked if r] == ["bytes=700-"]


def test_a_registry_that_ignores_ranges_begins_anew(server: s.Server, tmp_path: Path) -> None:
    server.manifest("v1", {"layers": [server.layer(s.tar({"w": b"0123456789"}), TAR)]})
    server.cut, server.ignores_ranges = 700, True
    with pytest.raises(Failure):
        image(server, tmp_path).fetch()
    assert files(image(server, tmp_path).fetch()[0]) == {"w": b"0123456789"}


def test_bytes_that_differ_from_their_digest_are_thrown_away(server: s.Server, tmp_path: Path) -> None:
    layer = server.layer(s.tar({"w": b"0123456789"}), TAR)
    server.held[f"blobs/{layer['digest']}"] = bytes(layer["size"])
    server.manifest("v1", {"layers": [layer]})
    with pytest.raises(Failure) as failed:
        image(server, tmp_path).fetch()
    assert failed.value.reason == "Corrupt"
    assert not any(p.is_file() for p in tmp_path.rglob("*"))


def test_more_bytes_than_a_layer_has_are_not_read(server: s.Server, tmp_path: Path) -> None:
    layer = server.layer(b"x", TAR)
    server.held[f"blobs/{layer['digest']}"] = bytes(20 * 1024**2)
    server.manifest("v1", {"layers": [layer]})
    with pytest.raises(Failure):
        image(server, tmp_path).fetch()


LOGINS = [
    ("basic", 'Basic realm="r"', f"Basic {AUTH}"),
    (
        "bearer",
        'Bearer realm="{url}/token",service="registry",scope="repository:models/small:pull"',
        "Bearer bearer-token",
    ),
]


@pytest.mark.parametrize(("reason", "challenge", "login"), LOGINS, ids=[x[0] for x in LOGINS])
def test_a_registry_that_asks_gets_the_credential_of_its_host(
    server: s.Server, tmp_path: Path, reason: str, challenge: str, login: str
) -> None:
    server.login = login
    server.challenge = challenge.replace("{url}", f"http://127.0.0.1:{server.port}")
    server.manifest("v1", {"layers": [server.layer(s.tar({"w": b"w"}), TAR)]})
    assert files(image(server, tmp_path, auth=DOCKER).fetch()[0]) == {"w": b"w"}, reason
    token = [(path, sent) for path, sent, _ in server.asked if path.startswith("/token")]
    assert all(sent == f"Basic {AUTH}" and "scope=repository" in path for path, sent in token)


@pytest.mark.parametrize(
    ("reason", "auth"),
    [
        ("no credential", ""),
        ("another host's", json.dumps({"auths": {"other.example.org": {"auth": AUTH}}})),
        ("a wrong one", json.dumps({"auths": {"registry.example.org": {"username": "a", "password": "b"}}})),
    ],
)
def test_a_credential_that_is_refused_is_told(
    server: s.Server, tmp_path: Path, reason: str, auth: str
) -> None:
    server.login, server.challenge = f"Basic {AUTH}", "Basic"
    server.manifest("v1", {"layers": []})
    with pytest.raises(Failure) as failed:
        image(server, tmp_path, auth=auth).fetch()
    assert (failed.value.reason, failed.value.hopeless) == ("Unauthorized", True), reason


@pytest.mark.parametrize("auth", ["{", "[]", '{"auths": 3}', '{"auths": {"registry.example.org": 3}}'])
def test_a_pull_secret_that_is_none_is_told(auth: str) -> None:
    with pytest.raises(Failure) as failed:
        Registry(Reference.parse(REF), auth)
    assert failed.value.reason == "Unauthorized"


def test_a_credential_is_not_sent_to_the_store_behind_the_registry(server: s.Server, tmp_path: Path) -> None:
    with s.serving(s.Server()) as store:
        server.login, server.challenge = f"Basic {AUTH}", "Basic"
        server.elsewhere = f"http://localhost:{store.port}"
        layer = server.layer(s.tar({"w": b"w"}), TAR)
        store.held = dict(server.held)
        server.manifest("v1", {"layers": [layer]})
        assert files(image(server, tmp_path, auth=DOCKER).fetch()[0]) == {"w": b"w"}
        assert {login for _, login, _ in store.asked} == {""}


def test_a_token_service_without_tls_gets_no_credential() -> None:
    registry = Registry(Reference.parse(REF), DOCKER)
    with pytest.raises(Failure):
        registry._answer('Bearer realm="http://evil.example.org/token"')


HOSTILE: list[tuple[str, bytes]] = [
    ("a path out of the volume", s.tar({"../../w": b"x"})),
    ("an absolute path", s.tar({"/etc/w": b"x"})),
    ("a link that leads out", s.tar({}, {"out": "/etc"})),
    ("a link up", s.tar({}, {"out": "../../.."})),
    ("a whiteout of what is outside", s.tar({"../../.wh.keep": b""})),
]


@pytest.mark.parametrize(("reason", "layer"), HOSTILE, ids=[h[0] for h in HOSTILE])
def test_a_layer_writes_and_removes_nothing_outside(
    server: s.Server, tmp_path: Path, reason: str, layer: bytes
) -> None:
    root = tmp_path / "volume"
    root.mkdir()
    (tmp_path / "keep").write_text("mine")
    (root / "keep").write_text("mine")
    server.manifest("v1", {"layers": [server.layer(layer, TAR), server.layer(s.tar({"ok": b"1"}), TAR)]})
    with contextlib.suppress(Failure):
        folder, _ = image(server, root).fetch()
        assert not (folder / "out").is_symlink(), reason
    assert (tmp_path / "keep").read_text() == (root / "keep").read_text() == "mine"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["keep", "volume"]


BROKEN: list[tuple[str, dict[str, object], str]] = [
    ("no layers", {"layers": []}, "NotFound"),
    ("no platform of ours", {"manifests": [{"platform": {"os": "windows"}, "digest": "x"}]}, "NotFound"),
    ("a digest that is a path", {"layers": [{"digest": "../../x", "size": 1, "mediaType": TAR}]}, "Invalid"),
]


@pytest.mark.parametrize(("reason", "manifest", "told"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_manifest_that_makes_no_sense_is_told(
    server: s.Server, tmp_path: Path, reason: str, manifest: dict[str, object], told: str
) -> None:
    server.manifest("v1", manifest)
    with pytest.raises(Failure) as failed:
        image(server, tmp_path).fetch()
    assert (failed.value.reason, failed.value.hopeless) == (told, True), reason


def test_layers_nobody_can_unpack_are_told(server: s.Server, tmp_path: Path) -> None:
    for data, kind in ((b"zz", f"{TAR}+zstd"), (b"no tar", TAR), (b"no gzip", f"{TAR}+gzip"), (b"x", "text")):
        server.manifest("v1", {"layers": [server.layer(data, kind)]})
        with pytest.raises(Failure) as failed:
            image(server, tmp_path).fetch()
        assert failed.value.hopeless is True, kind


def test_a_tag_that_is_not_there_is_told(server: s.Server, tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        image(server, tmp_path).fetch()
    assert failed.value.reason == "NotFound"


REFERENCES: list[tuple[str, str, str, str]] = [
    ("r.example.org/a/b:v1", "r.example.org", "a/b", "v1"),
    ("r.example.org:5000/a", "r.example.org:5000", "a", "latest"),
    ("localhost:5000/a:1", "localhost:5000", "a", "1"),
    ("qwen", "docker.io", "library/qwen", "latest"),
    ("org/qwen:v2", "docker.io", "org/qwen", "v2"),
    (f"r.example.org/a:v1@sha256:{'0' * 64}", "r.example.org", "a", f"sha256:{'0' * 64}"),
]


@pytest.mark.parametrize(("text", "host", "path", "version"), REFERENCES, ids=[r[0] for r in REFERENCES])
def test_a_reference_is_read_as_container_tools_read_it(
    text: str, host: str, path: str, version: str
) -> None:
    assert Reference.parse(text) == Reference(host, path, version)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r.example.org/",
        "r.example.org/../x",
        "r.example.org/a?x=1",
        "r.example.org/a:b:c",
        "u@r.example.org/a",
        "u:p@evil.example.org/a:v1",
        "r.example.org/A",
        "r.example.org/a@sha256:0",
        "r.example.org/a b",
        "https://r.example.org/a",
        "r.example.org#.evil.org/a",
    ],
)
def test_a_reference_that_is_none_reaches_no_server(text: str) -> None:
    with pytest.raises(Failure):
        Reference.parse(text)
