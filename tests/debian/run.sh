#!/usr/bin/env bash
# Makes the packages of this build, installs them below a temporary root, checks them, and removes and purges them.
#   run.sh BUILD      exit code 77: this system has no dpkg
set -euo pipefail
build=$1 work=$1/debian_test
for tool in dpkg dpkg-deb dpkg-shlibdeps cpack; do
  command -v $tool > /dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v fakeroot > /dev/null || { echo "SKIPPED: not root, and fakeroot is not installed"; exit 77; }
  as_root=(fakeroot)
fi
fail() { echo "FAILED: $*" >&2; exit 1; }

rm -rf "$work"
mkdir -p "$work/root/var/lib/dpkg/"{info,updates,triggers} "$work/root/etc"
root=$work/root
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
# With DPKG_ROOT the maintainer scripts do not change this system. Dependencies are installed here, not below the root.
dpkg_there() {
  "${as_root[@]}" dpkg --root="$root" --log="$work/dpkg.log" --force-not-root --force-script-chrootless --force-depends \
    --force-bad-path --force-confold "$@" < /dev/null > "$work/dpkg.out" 2>&1 || { cat "$work/dpkg.out" >&2; fail "dpkg $*"; }
}
# Lists all files below the root, except those of dpkg and those of users that systemd-sysusers made.
files() { (cd "$root" && find . \( -path ./var/lib/dpkg -o -name 'passwd*' -o -name 'group*' -o -name '*shadow*' -o -name '.pwd.lock' \) \
  -prune -o ! -type d -print | sort); }

# The script stores output before it checks it. If "grep -q" or "head" ended early, SIGPIPE would kill the program that still
# writes, and pipefail would report a failure.

# ---- the packages ----
if grep -q '^GRADWIRE_MARCH:.*=native$' "$build/CMakeCache.txt"; then
  ! cpack --config "$build/CPackConfig.cmake" -B "$work/native" > "$work/native.log" 2>&1 || fail "cpack must refuse programs for this processor only"
  grep -q 'cmake --preset package' "$work/native.log" || fail "cpack does not name the remedy: $(cat "$work/native.log")"
fi
cpack --config "$build/CPackConfig.cmake" -D CPACK_GRADWIRE_FOR_HERE=ON -B "$work/packages" > "$work/cpack.log" 2>&1 ||
  { tail -n 20 "$work/cpack.log" >&2; fail cpack; }
packages=("$work"/packages/*.deb)
python=$(sed -n 's/^GRADWIRE_PYTHON_INTERPRETER:INTERNAL=//p' "$build/CMakeCache.txt")
[[ $python == /usr/bin/* ]] || python=  # the package is for the system's interpreter alone
[ ${#packages[@]} -eq $([ -n "$python" ] && echo 3 || echo 2) ] || fail "packages: ${packages[*]}"
for part in server client; do
  package=$(echo "$work"/packages/gradwire-${part}_*.deb)
  depends=$(dpkg-deb -f "$package" Depends)
  for library in libc6 libssl libprotobuf-lite libzstd; do
    [[ $depends == *$library* ]] || fail "gradwire-$part does not depend on $library: $depends"
  done
  [[ $(dpkg-deb -f "$package" Description) == "federated learning: the $part"* ]] || fail "gradwire-$part has no description"
  ! dpkg-deb -c "$package" | grep -vE ' root/root ' || fail "some files do not belong to root"
done
[[ $(dpkg-deb -f "$work"/packages/gradwire-server_*.deb Depends) == *libsqlite3* ]] || fail "the server does not depend on SQLite"

if [ -n "$python" ]; then
  package=$(echo "$work"/packages/python3-gradwire_*.deb)
  depends=$(dpkg-deb -f "$package" Depends)
  for dependency in "python3 (>= 3." "python3 (<< 3." python3-numpy libc6 libssl; do
    [[ $depends == *"$dependency"* ]] || fail "python3-gradwire does not depend on $dependency: $depends"
  done
fi

# ---- installed ----
dpkg_there --install "${packages[@]}"
for file in usr/bin/gradwire-server usr/bin/gradwire-client usr/lib/systemd/system/gradwire-server.service \
  usr/lib/systemd/system/gradwire-server@.service usr/share/gradwire/monitoring/gradwire-alerts.yml \
  usr/share/gradwire/monitoring/gradwire-dashboard.json usr/share/doc/gradwire-server/how-to/upgrade_and_back_up.md \
  usr/lib/systemd/system/gradwire-client.service usr/lib/sysusers.d/gradwire-server.conf etc/gradwire/experiment.toml \
  etc/gradwire/client.env usr/share/doc/gradwire-server/copyright usr/share/doc/gradwire-client/how-to/run_a_federation.md; do
  [ -f "$root/$file" ] || fail "$file is not installed"
done
for program in gradwire-server gradwire-client; do
  [[ $("$root/usr/bin/$program" --version) == [0-9]* ]] || fail "$program does not run"
done
if [ -n "$python" ]; then
  found=$(cd "$work" && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/usr/lib/python3/dist-packages "$python" -c \
    "import gradwire as gw; print(gw.__path__[0], gw.run('quadratics', set={'run.rounds': 3}).outcome)")
  [ "$found" = "$root/usr/lib/python3/dist-packages/gradwire finished" ] || fail "the Python package: $found"
fi
if command -v systemd-sysusers > /dev/null; then
  grep -q '^gradwire:' "$root/etc/passwd" || fail "the user gradwire is missing"
fi
# The example is a complete experiment, so the server starts and waits for clients. None come.
code=0
"$root/usr/bin/gradwire-server" "$root/etc/gradwire/experiment.toml" --listen 127.0.0.1:0 --state "$work/state" \
  --join-deadline-ms 1 > "$work/server.log" 2>&1 || code=$?
[ $code -eq 1 ] && grep -q 'clients have joined' "$work/server.log" || fail "the example: $(cat "$work/server.log")"

# ---- the units ----
# Servers of several runs have the guards of a single one.
guards() { sed -n '/may only listen/,$p' "$root/usr/lib/systemd/system/$1"; }
[ -n "$(guards gradwire-server.service)" ] && [ "$(guards gradwire-server.service)" = "$(guards gradwire-server@.service)" ] ||
  fail "the guards of gradwire-server@.service differ"
if command -v systemd-analyze > /dev/null; then
  for part in server client server@; do
    unit=$work/gradwire-${part/@/@run}.service
    sed "s#^ExecStart=gradwire#ExecStart=$root/usr/bin/gradwire#" "$root/usr/lib/systemd/system/gradwire-$part.service" > "$unit"
    said=$(systemd-analyze verify "$unit" 2>&1 | grep "gradwire-${part%@}" || true)
    [ -z "$said" ] || fail "systemd-analyze verify: $said"
    # The exposure must be 2.0 or less ("OK"); docs/how-to/run_a_federation.md has the figures. Before version 250, systemd-analyze rates only
    # loaded units.
    if [[ $(systemd-analyze --help) == *--offline* ]]; then
      systemd-analyze security --offline=yes --threshold=20 --no-pager "$unit" > "$work/security-$part.log" 2>&1 ||
        fail "$(tail -n 1 "$work/security-$part.log")"
      tail -n 1 "$work/security-$part.log"
    fi
  done
fi

# ---- removed ----
mkdir -p "$root/var/lib/gradwire/run"
echo model > "$root/var/lib/gradwire/run/model.bin"
dpkg_there --remove gradwire-server gradwire-client ${python:+python3-gradwire}
left=$(files | tr '\n' ' ')
[ "$left" = "./etc/gradwire/client.env ./etc/gradwire/experiment.toml ./var/lib/gradwire/run/model.bin " ] || fail "removal leaves: $left"
dpkg_there --purge gradwire-server gradwire-client ${python:+python3-gradwire}
left=$(files | tr '\n' ' ')
[ "$left" = "./var/lib/gradwire/run/model.bin " ] || fail "a purge leaves: $left"
