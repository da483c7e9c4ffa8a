#!/bin/sh
# Makes a base image out of the distribution's own packages, for machines that reach a Debian mirror but no image
# registry. Usage: containers/base/bootstrap.sh [TAG [SUITE]]    (as root, on Debian; needs debootstrap and Docker)
#
# Suites: bookworm has Python 3.11 (AppWorld's), bullseye has 3.9. More packages: PACKAGES=git,patch,gcc.
set -eu

TAG=${1:-flexmem/base:bookworm}
SUITE=${2:-bookworm}
PACKAGES=${PACKAGES:-}
MIRROR=${MIRROR:-}
RECIPE=1 # raise it when what is made here changes

fail() { echo "bootstrap: $*" >&2; exit 1; }

label=$SUITE-$RECIPE-$PACKAGES
if [ "$(docker image inspect --format '{{index .Config.Labels "flexmem.base"}}' "$TAG" 2>/dev/null)" = "$label" ]; then
    echo "$TAG is there already"
    exit 0
fi
[ "$(id -u)" = 0 ] || fail "debootstrap needs root"
command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap"
docker version >/dev/null || fail "no Docker daemon answers: containers/start-docker.sh starts one"

# The machine's own source, which may be a mirror; the image gets Debian's.
if [ -z "$MIRROR" ]; then
    MIRROR=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(CREATED_BY)' 2>/dev/null |
        awk -v suite="$SUITE" '$2 == suite && $3 == "Packages" && !seen++ {print $1}')
fi
[ -n "$MIRROR" ] || MIRROR=http://deb.debian.org/debian

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
include=ca-certificates,python3,python3-venv${PACKAGES:+,$PACKAGES}
made=
for attempt in 1 2 3; do
    debootstrap --variant=minbase --include="$include" "$SUITE" "$folder/root" "$MIRROR" >"$folder/log" 2>&1 && made=yes && break
    rm -rf "$folder/root"
    sleep $((attempt * 5))
done
[ -n "$made" ] || { tail -n 20 "$folder/log" >&2; fail "debootstrap from $MIRROR failed; its last lines stand above"; }

echo "deb http://deb.debian.org/debian $SUITE main" >"$folder/root/etc/apt/sources.list"
rm -rf "$folder/root/var/cache/apt" "$folder/root/var/lib/apt/lists" "$folder/root/var/log" "$folder/root/usr/share/doc" \
    "$folder/root/usr/share/man" "$folder/root/usr/share/locale" "$folder/root/etc/hostname" "$folder/root/etc/resolv.conf"
mkdir -p "$folder/root/var/cache/apt/archives/partial" "$folder/root/var/lib/apt/lists/partial" "$folder/root/var/log"
tar -C "$folder/root" --numeric-owner -c . | docker import \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV LANG=C.UTF-8' \
    --change "LABEL flexmem.base=$label" \
    - "$TAG" >/dev/null
echo "$TAG is made of $SUITE from $MIRROR"
