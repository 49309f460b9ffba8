#!/bin/sh
# Runs the tests of the Python package.
#   run.sh BUILD DATA INTERPRETER [ARGUMENTS of pytest]
# DATA is the folder of public data sets. INTERPRETER is empty if the package was not built.
set -eu
if [ -z "$3" ]; then
  echo "SKIPPED: this build has no Python package"
  exit 77
fi
"$3" -c "import pytest" || { echo "SKIPPED: $3 has no pytest"; exit 77; }
cd "$(dirname "$0")"
export PYTHONPATH="$1/python" GRADWIRE_BIN="$1/bin" GRADWIRE_DATA="$2" PYTHONDONTWRITEBYTECODE=1
interpreter=$3
shift 3
# The interpreter was built without the address sanitizer, which must come first, and with it the library whose functions for
# exceptions it replaces.
libraries=$(ldd "$PYTHONPATH"/gradwire/_core.*.so)
sanitizer=$(echo "$libraries" | awk '/libasan/ {print $3}')
if [ -n "$sanitizer" ]; then
  export LD_PRELOAD="$sanitizer $(echo "$libraries" | awk '/libstdc\+\+/ {print $3}')" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0
fi
exec "$interpreter" -X dev -m pytest -q -p no:cacheprovider "$@"
