#!/bin/sh
# serve.sh SERVER PROGRAM FOLDER: runs a small experiment in FOLDER with SERVER and one client, PROGRAM HOST:PORT.
set -eu
server=$1 program=$2 folder=$3
mkdir -p "$folder"
cat > "$folder/own.toml" <<'END'
name = "own"
[problem]
kind = "least_squares"
data = "libsvm:of-the-clients"
[clients]
count = 1
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = 0.2
[run]
rounds = 200
evaluate_every = 200
END
timeout 60 "$server" "$folder/own.toml" --listen 127.0.0.1:0 --state "$folder/state" --quiet &
for _ in $(seq 100); do
  [ -s "$folder/state/address" ] && break
  sleep 0.1
done
timeout 60 "$program" "$(cat "$folder/state/address")"
wait $!
# The model must be y = 2 x_1 - x_2.
awk -F, 'END { exit !($2 < 1e-6) }' "$folder/state/metrics.csv"
