# Functions for the scripts of this folder and for .ci/run: paths, the choice of the compiler, and the build of a preset.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Prints one line on stderr and ends the script.
die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# at_least VERSION MINIMUM: succeeds if VERSION is MINIMUM or later. Both are dotted numbers.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# compiler_serves CXX: succeeds if CXX is clang 15 or later, or g++ $gcc_min or later.
gcc_min=11
compiler_serves() {
  command -v "$1" > /dev/null || return 1
  case $("$1" --version) in
    *clang*) at_least "$("$1" -dumpversion)" 15 ;;
    *) at_least "$("$1" -dumpfullversion -dumpversion)" "$gcc_min" ;;
  esac
}

# Sets CXX to the system's compiler, or to the newest g++-N if that is too old. Keeps a CXX that the caller set.
choose_compiler() {
  if [ -z "${CXX:-}" ]; then
    for CXX in g++ c++ g++-15 g++-14 g++-13 g++-12 g++-11 ""; do
      compiler_serves "$CXX" && break
    done
  fi
  export CXX
  [ -n "$CXX" ] && compiler_serves "$CXX"
}

jobs() { nproc 2> /dev/null || sysctl -n hw.ncpu 2> /dev/null || echo 2; }

# build_preset PRESET [TARGET...]: configures build/PRESET if it is missing or older than the presets, then builds it with
# $GRADWIRE_JOBS jobs.
build_preset() {
  local preset=$1
  shift
  local folder=$root/build/$preset
  choose_compiler || die "no C++ compiler (g++ >= $gcc_min or clang++ >= 15); run tools/setup"
  if [ ! -f "$folder/build.ninja" ] || [ "$root/CMakePresets.json" -nt "$folder/build.ninja" ]; then
    (cd "$root" && cmake --preset "$preset") || return 1
  fi
  cmake --build "$folder" --parallel "${GRADWIRE_JOBS:-$(jobs)}" ${1:+--target "$@"}
}
