#!/usr/bin/env bash
# Boots a Debian system with both packages and uses them as operators do: the units with all their restrictions, a token that
# systemd passes on, and a run that continues after kills of the server and the client. It is not one of ctest's tests, because
# it needs root, debootstrap, systemd-nspawn, a Debian archive, and minutes.
#   boot.sh WORK PACKAGES [MIRROR]   WORK: a folder for the system; it is kept. PACKAGES: the folder with the two .deb of tools/packages
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
work=$1 packages=$2 mirror=${3:-http://deb.debian.org/debian}
for tool in debootstrap systemd-nspawn; do
  command -v $tool > /dev/null || { echo "$tool is not installed; as root, run: apt-get install debootstrap systemd-container" >&2; exit 2; }
done
[ "$(id -u)" -eq 0 ] || { echo "only root can boot a system in a folder" >&2; exit 2; }
. /etc/os-release

system=$work/system root=$work/root
if [ ! -e "$system/etc/debian_version" ]; then
  mkdir -p "$work"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$VERSION_CODENAME" "$system" "$mirror" > "$work/debootstrap.log" ||
    { tail -n 5 "$work/debootstrap.log" >&2; exit 1; }
fi
rm -rf "$root"
cp -a "$system" "$root"
cp "$packages"/gradwire-{server,client}_*.deb "$root/srv/"
echo '127.0.0.1 localhost' > "$root/etc/hosts"
chroot "$root" sh -c 'apt-get install -y -q /srv/*.deb' > "$work/install.log" 2>&1 || { tail -n 5 "$work/install.log" >&2; exit 1; }

cat > "$root/srv/operate" << 'END'
#!/bin/bash
exec > /srv/log 2>&1
trap 'systemctl poweroff' EXIT
fail() { echo "FAILED: $*"; journalctl --no-pager -n 20 -u gradwire-server -u gradwire-client; exit 1; }
as_server() { su -s /bin/sh gradwire -c "cd / && $*"; }
round() { as_server gradwire-server status /var/lib/gradwire/run 2> /dev/null | sed -n 's/^round  *\([0-9]*\) of .*/\1/p'; }
wait_for_a_round() {
  local from until
  from=$(round)
  for _ in $(seq 60); do
    until=$(round)
    [ "${until:-0}" -gt "${from:-0}" ] && [ "$until" -gt "${1:-0}" ] && return
    sleep 1
  done
  fail "no round after ${from:-the start} in a minute"
}
# One site, and more rounds than can end during this test.
sed -i -e 's/^count = .*/count = 1/' -e 's/^rounds = .*/rounds = 100000000/' -e 's/^step_size = .*/step_size = 0.01/' /etc/gradwire/experiment.toml
as_server gradwire-server init /var/lib/gradwire/identity --clients 1 > /srv/token
install -m 600 /srv/token /etc/gradwire/token
printf 'SERVER=localhost:7000\nDATA=digits\n' > /etc/gradwire/client.env
mkdir -p /etc/systemd/system/gradwire-client.service.d
printf '[Service]\nWatchdogSec=5\nRestartSec=1\n' > /etc/systemd/system/gradwire-client.service.d/soon.conf
systemctl enable --now gradwire-server gradwire-client
wait_for_a_round
systemctl show -P StatusText gradwire-client | grep -q 'starts: ' || fail "the status of the client: $(systemctl show -P StatusText gradwire-client)"
# The watchdog replaces a client that does not run.
before=$(round) stopped=$(systemctl show -P MainPID gradwire-client)
kill -STOP "$stopped"
wait_for_a_round "$before"
[ "$(systemctl show -P MainPID gradwire-client)" != "$stopped" ] || fail "the watchdog did not replace the client"
echo "round $before, the client stopped, round $(round)"
for unit in gradwire-server gradwire-client; do
  before=$(round)
  systemctl kill -s KILL $unit
  wait_for_a_round "$before"
  echo "round $before, $unit killed, round $(round)"
done
systemd-analyze security --no-pager | grep gradwire
systemctl stop gradwire-server
[ "$(systemctl show -P Result gradwire-server)" = success ] || fail "a stop ends with $(systemctl show -P Result gradwire-server)"
dpkg --purge gradwire-server gradwire-client > /dev/null 2>&1 || fail "dpkg --purge"
systemctl is-active -q gradwire-client && fail "the client runs without its package"
[ -n "$(ls -A /var/lib/gradwire/identity)" ] || fail "a purge removes the identity"
echo 'All is well.'
END
chmod +x "$root/srv/operate"
cat > "$root/etc/systemd/system/operate.service" << 'END'
[Unit]
After=multi-user.target
[Service]
ExecStart=/srv/operate
END
mkdir -p "$root/etc/systemd/system/default.target.wants"
ln -s /etc/systemd/system/operate.service "$root/etc/systemd/system/default.target.wants/"
timeout 300 systemd-nspawn -D "$root" --register=no --keep-unit --private-network -b > "$work/boot.log" 2>&1 < /dev/null || true
cat "$root/srv/log"
tail -n 1 "$root/srv/log" | grep -q '^All is well' || exit 1
