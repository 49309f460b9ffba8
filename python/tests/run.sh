#!/bin/sh
# Runs the tests of the Python package.
#   run.sh BUILD DATA INTERPRETER    DATA is the folder of public data sets. INTERPRETER is empty if the package was not built
set -eu
if [ -z "$3" ]; then
  echo "SKIPPED: this build has no Python package"
  exit 77
fi
"$3" -c "import pytest" || { echo "SKIPPED: $3 has no pytest"; exit 77; }
cd "$(dirname "$0")"
export PYTHONPATH="$1/python" GRADWIRE_BIN="$1/bin" GRADWIRE_DATA="$2" PYTHONDONTWRITEBYTECODE=1
exec "$3" -m pytest -q -p no:cacheprovider .
