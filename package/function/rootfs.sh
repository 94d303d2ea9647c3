#!/usr/bin/env bash
# Put the runtime image's whole root file system together: Python from Debian's packages, this project, its
# dependencies, and nothing that these do not load: no shell, no package manager, no OpenSSL (gRPC carries its
# own TLS), so there is little to patch.
#
# usage: rootfs.sh ROOT, in the project's folder, as root on Debian 12 with python3-pip and binutils.
set -euo pipefail

root=$1
python=python3.11
here=$(cd "$(dirname "$0")" && pwd)
site=$root/usr/local/lib/$python/dist-packages
packages=(libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 "lib$python-minimal" "$python-minimal" "lib$python-stdlib")

# Wheels are of one minor version: built for another, they are not found at run time.
command -v "$python" >/dev/null || { echo "rootfs.sh: no $python here: build on Debian 12" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# As root: the user that apt would fetch as may not write here, and it says so for every file.
(cd "$scratch" && apt-get download --quiet -o APT::Sandbox::User=root "${packages[@]}")
# Scanners for known faults look here for what an image without dpkg holds, as in Google's distroless images.
mkdir -p "$root/var/lib/dpkg/status.d"
for deb in "$scratch"/*.deb; do
  dpkg-deb --extract "$deb" "$root"
  dpkg-deb --field "$deb" >"$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
done

"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile \
  --only-binary :all: --constraint "$here/constraints.txt" --target "$site" .
rm -rf "${site:?}/bin"

# Not needed to serve: locales and encodings of the C library, manuals, Python's tests and development tools.
# Copyright files stay.
find "$root/usr/share" -mindepth 1 -maxdepth 1 ! -name doc -exec rm -rf {} +
find "$root/usr/share/doc" -type f ! -name copyright -delete
rm -rf "$root"/usr/lib/*-linux-gnu/gconv "$root"/lib/*-linux-gnu/gconv "$root/usr/lib/valgrind" "$root/usr/bin/pdb3.11"
for module in test idlelib lib2to3 ensurepip turtledemo tkinter pydoc_data venv distutils sqlite3 curses; do
  rm -rf "$root/usr/lib/$python/$module"
done
rm -f "$root/usr/lib/$python/lib-dynload"/{_test,_xxtest,xxlimited,_ctypes_test,_codecs_,ossaudiodev}*
find "$site" -name '*.pyx' -delete
# CEL's wheel comes with its symbols: a quarter of its 50 MB.
find "$site" -name '*.so' -exec strip --strip-unneeded {} +

# Modules of the standard library whose libraries are not among the packages; their users do without.
loader=$(cd "$root" && find lib* -name 'ld-linux-*.so.*' -print -quit)
for extension in "$root/usr/lib/$python/lib-dynload"/*.so; do
  chroot "$root" "/$loader" --list "${extension#"$root"}" >/dev/null 2>&1 || rm "$extension"
done

mkdir -p "$root/etc"
echo 'modelplane:x:2000:2000::/:/nonexistent' >"$root/etc/passwd"
echo 'modelplane:x:2000:' >"$root/etc/group"

# A start that had to compile took half a second longer, and a read-only root cannot keep what it compiled.
find "$root" -name __pycache__ -prune -exec rm -rf {} +
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$root" -p / "$root/usr/lib/$python" "$site"

# Anything missing must show here, not in somebody's cluster.
chroot "$root" "/usr/bin/$python" -IBc 'import modelplane.shell.server'
find "$root" -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH:-0}" {} +
