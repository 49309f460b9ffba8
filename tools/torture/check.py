"""Checks of the results of a run."""
import json
import math
import pathlib
import struct

SUMS_DIFFER_BY = 1e-9  # allowed difference, as a share of the largest entry, if relays add up replies


def model(path):
    data = pathlib.Path(path).read_bytes()
    magic, width, _, dim = struct.unpack_from("<8sIIQ", data)
    if magic != b"GWMODEL1" or len(data) != 24 + width * dim + 4:
        raise ValueError(f"{path} is not a model")
    return struct.unpack_from(f"<{dim}{'d' if width == 8 else 'f'}", data, 24)


def metrics(path):
    """Returns the rows as dictionaries of text, without the seconds."""
    lines = pathlib.Path(path).read_text().splitlines()
    names = lines[0].split(",")
    return [{n: v for n, v in zip(names, line.split(",")) if n != "seconds"} for line in lines[1:]]


def rounds_with_rows(plan):
    return sorted(set(range(0, plan.rounds + 1, plan.evaluate_every())) | {plan.rounds})


def outcome(state):
    try:
        return json.loads((pathlib.Path(state) / "summary.json").read_text())["outcome"]
    except (OSError, ValueError, KeyError):
        return None


def near(a, b, scale=None):
    a, b = float(a), float(b)
    return abs(a - b) <= SUMS_DIFFER_BY * (max(abs(a), abs(b)) if scale is None else scale)


def differences(plan, state, reference):
    """Returns the violated conditions, one line each. Empty if all hold."""
    state, reference = pathlib.Path(state), pathlib.Path(reference)
    rows = metrics(state / "metrics.csv")
    wanted = rounds_with_rows(plan)
    if [int(row["round"]) for row in rows] != wanted:
        first = [row["round"] for row in rows][:8]
        return [f"metrics.csv has rows of rounds {first}..., {len(rows)} in all; expected {len(wanted)}"]
    if plan.quorum < 1:
        return differences_of_quorum(plan, rows)
    right = metrics(reference / "metrics.csv")
    found = []
    if plan.exact():
        if (state / "model.bin").read_bytes() != (reference / "model.bin").read_bytes():
            found.append("model.bin differs from that of gradwire run")
        for a, b in zip(rows, right):
            if a != b:
                names = [n for n in b if a.get(n) != b[n]]
                found.append(f"metrics.csv, round {b['round']}: {names[0]} is {a.get(names[0])}, not {b[names[0]]}"
                             f" ({', '.join(names)} differ)")
                break
        return found
    ours, theirs = model(state / "model.bin"), model(reference / "model.bin")
    scale = max(map(abs, theirs))
    off = distance(ours, theirs)
    if not off <= SUMS_DIFFER_BY * scale:
        found.append(f"model.bin differs by {off:.3g}; its largest entry is {scale:.3g}")
    for a, b in zip(rows, right):
        equal = all(a[n] == b[n] for n in ("round", "replies", "grad_calls", "bits_down", "bytes_down"))
        if not equal or not near(a["loss"], b["loss"]):
            found.append(f"metrics.csv, round {b['round']}: {a} is not near {b}")
            break
    return found


def differences_of_quorum(plan, rows):
    """Checks a run with a quorum. Its bits depend on the fast clients, but the counts must be right and the loss must fall."""
    found = []
    asked = max(1, round(plan.participation * plan.clients))
    fewest = max(1, math.ceil(plan.quorum * asked - 1e-9))
    for row in rows[1:]:
        replies = int(row["replies"])
        most = plan.clients if plan.sites == "adds" else fewest
        if not fewest <= replies <= most:
            found.append(f"metrics.csv, round {row['round']}: {replies} replies were used; {fewest} end a round")
            break
    if not float(rows[-1]["loss"]) < float(rows[0]["loss"]):
        found.append(f"the loss did not fall: from {rows[0]['loss']} to {rows[-1]['loss']}")
    return found


def is_off(plan, folder):
    """Returns an error if the model is too far from the optimum, else an empty list. If only one end counted a reply, the fixed
    point would move. The allowed distance follows from a simulation."""
    optimum = model(folder / "optimum" / "model.bin")
    scale = max(map(abs, optimum))
    off, usual = (distance(model(folder / name / "model.bin"), optimum) / scale for name in ("state", "reference"))
    if off <= max(math.sqrt(usual) / 100, 1e-9 if plan.precision == "fp64" else 1e-4):
        return []
    return [f"model.bin differs from the optimum by {off:.3g} of its largest entry; a simulation differs by {usual:.3g}"]


def distance(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))
