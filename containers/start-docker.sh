#!/bin/sh
# Starts a Docker daemon on a bare Debian machine (no systemd, as in many CI runners), and installs it if it is missing.
# Does nothing where a daemon answers. Usage: containers/start-docker.sh    (as root)
set -eu

LOG=${DOCKER_LOG:-/var/log/dockerd.log}
WAIT_S=${DOCKER_WAIT_S:-60}

answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }
fail() { echo "start-docker: $*" >&2; exit 1; }

if version=$(answers); then
    echo "Docker $version answers already"
    exit 0
fi
[ -z "${DOCKER_HOST:-}" ] || fail "DOCKER_HOST names $DOCKER_HOST, where no daemon answers; start that one, or unset it"
[ "$(id -u)" = 0 ] || fail "no daemon answers, and starting one needs root"

missing=
command -v dockerd >/dev/null || missing="$missing docker.io"
command -v iptables >/dev/null || missing="$missing iptables"
command -v docker-init >/dev/null || [ -x /usr/libexec/docker/docker-init ] || missing="$missing tini"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || fail "not installed:$missing; this script can install them on Debian only"
    echo "installing$missing"
    # A package can't start its services here, and must not try to.
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d.flexmem && chmod +x /usr/sbin/policy-rc.d.flexmem
    own_policy=
    [ -e /usr/sbin/policy-rc.d ] || { own_policy=yes; cp /usr/sbin/policy-rc.d.flexmem /usr/sbin/policy-rc.d; }
    rm /usr/sbin/policy-rc.d.flexmem
    installed=yes
    for attempt in 1 2 3; do
        installed=yes
        # shellcheck disable=SC2086 # one word a package
        apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing && break
        installed=
        sleep $((attempt * 5))
    done
    [ -z "$own_policy" ] || rm -f /usr/sbin/policy-rc.d
    [ -n "$installed" ] || fail "apt-get could not install$missing; see its messages above"
fi

rm -f /var/run/docker.pid # of a daemon that was killed; one that lives would have answered
setsid dockerd >>"$LOG" 2>&1 </dev/null &
daemon=$!
waited=0
until version=$(answers); do
    kill -0 "$daemon" 2>/dev/null || { tail -n 20 "$LOG" >&2; fail "dockerd ended; its last lines stand above, all of them in $LOG"; }
    [ "$waited" -lt "$WAIT_S" ] || { tail -n 20 "$LOG" >&2; fail "no answer within $WAIT_S s; dockerd's last lines stand above"; }
    sleep 1
    waited=$((waited + 1))
done
echo "Docker $version answers; its log is $LOG"
