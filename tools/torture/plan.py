"""The plan of a run: experiment, sites and faults. Everything follows from the seed and the number of the run."""
import dataclasses
import itertools
import random
import re

# Name: (keys of [algorithm], properties). quorum: may be below 1. restores: the server can restore the state of a client;
# otherwise clients need a --state. adds: relays may add up replies. converges: reaches the optimum whichever clients are late.
ALGORITHMS = {
    "ef21": ('compressor = "topk:k=25%"\nstep_size = STEP(0.3)', "quorum restores adds converges"),
    "marina": ('compressor = "randk:k=25%"\nstep_size = STEP(0.1)', "restores adds converges"),
    "diana": ('compressor = "randk:k=25%"\nstep_size = STEP(0.1)', "quorum restores adds converges"),
    "scaffold": ("local_steps = 3\nlocal_step_size = STEP(0.1)", "quorum restores adds converges"),
    "fedavg": ("batch = 4\nlocal_steps = 3\nlocal_step_size = STEP(0.05)", "quorum restores adds"),
    "ef14": ('compressor = "topk:k=25%"\nstep_size = STEP(0.1)', "quorum adds"),
    "dasha_mvr": ('compressor = "randk:k=25%"\nstep_size = STEP(0.05)\nbatch = 4', "adds"),
    "ef21_bc": ('compressor = "topk:k=25%"\ncompressor_down = "topk:k=40%"\nstep_size = STEP(0.1)',
                "quorum restores adds converges"),
    "proxskip": ("step_size = STEP(0.3)\np = 0.3", "restores adds converges"),
    "fednl": ('compressor = "topk:k=20"\nstep_size = 1.0\noption = "2"', "restores converges"),
    "gd": ("step_size = STEP(0.3)", "quorum restores adds"),
    "adiana": ('compressor = "randk:k=25%"\nstep_size = STEP(0.05)\nmu = 0.1', "quorum restores adds converges"),
}
# Algorithms of runs in one process on the virtual clock, where replies arrive one by one.
ASYNCHRONOUS = {
    "fedbuff": ("buffer = 3\nlocal_steps = 2\nlocal_step_size = STEP(0.1)\nbatch = 4", ""),
    "ringmaster": ("delay_threshold = 6\nstep_size = STEP(0.05)\nbatch = 4", ""),
    "rennala": ("gradients = 5\nstep_size = STEP(0.2)\nbatch = 4", ""),
}
ALL_ALGORITHMS = {**ALGORITHMS, **ASYNCHRONOUS}
SPEEDS = ("sqrt", "lognormal:1", "0.1*sqrt*pareto:1.5", "file:speeds.txt")  # clients.latency
ROUNDS = {"usual": 4_000, "one command": 4_000, "silence": 2_000, "uploads": 80, "slow relay": 800, "resumed": 4_000_000}
TROUBLES_OF = {"usual": 30, "one command": 0, "silence": 5, "uploads": 30, "slow relay": 6, "resumed": 0}
SITES = ("flat", "exact", "adds", "mixed")

# Faults and their weights. The faults of links come first.
TROUBLES = {
    "cut": 3, "reset": 3, "truncate": 3, "delay": 2, "hold": 2, "lose": 3, "throttle": 1.5, "duplicate": 3,
    "cut all": 1, "hold some": 2,
    "kill server": 3, "kill client": 3, "kill relay": 3, "stop server": 1, "stop client": 2, "stop relay": 1.5,
    "stop clients": 1, "term server": 1.5, "term client": 1, "term relay": 1, "unauthenticated": 1,
    "restore server": 1,
}
# Additional faults of runs with TLS.
SECURE_TROUBLES = {"handshakes": 2, "mix roles": 2}


@dataclasses.dataclass
class Trouble:
    after: float  # seconds after the previous fault
    kind: str
    target: int  # index of a client or relay, modulo their number
    seconds: float  # duration
    share: float  # in [0, 1): chooses the size and the direction
    number: int


@dataclasses.dataclass
class Plan:
    seed: int
    index: int
    kind: str  # usual, uploads, slow relay, silence, one command, resumed
    algorithm: str
    sites: str
    quorum: float
    remember: bool  # clients have a --state
    clients: int
    participation: float
    over_selection: float
    client_state_replicas: bool
    durability: str
    precision: str
    dim: int
    rounds: int
    deadline_ms: int
    experiment_seed: int
    early: bool  # faults begin before the clients have joined
    secure: bool  # uses TLS; every client and relay authenticates
    troubles: list
    speeds: str = ""  # clients.latency
    lost: float = 0.0  # share of the replies that are lost
    kills: tuple = ()  # kills of a resumed run: (signal, seconds after the start of its process)

    def relays(self):
        return 0 if self.sites == "flat" else 1 if self.sites == "mixed" or self.kind == "slow relay" else 2

    def relay_of(self, client):
        """Returns the index of the relay of a client, or None."""
        if self.sites == "flat" or (self.relays() == 1 and client % 2 == 0):
            return None
        return client % self.relays()

    def has(self, word):
        return word in ALL_ALGORITHMS[self.algorithm][1].split()

    def exact(self):
        return self.quorum == 1 and self.sites != "adds"

    def overlaps(self):
        """Returns whether clients send while they compute: in every other run with long messages."""
        return self.kind in ("uploads", "slow relay") and self.index // 10 % 2 == 0

    def converges(self):
        """Returns whether the run must reach the optimum although draws or speeds decide which replies are used."""
        return self.quorum < 1 and self.has("converges") and self.kind in ("usual", "silence") and self.rounds >= 2_000

    def algorithm_keys(self):
        """Returns the keys of the algorithm. The steps are for d = 40. They shrink with d, because L grows."""
        factor = min(1, 40 / self.dim)
        return re.sub(r"STEP\((.*)\)", lambda step: f"{float(step[1]) * factor:g}", ALL_ALGORITHMS[self.algorithm][0])

    def evaluate_every(self):
        return max(1, self.rounds // 50)

    def optimum(self):
        """Returns a plan for the same problem that reaches the optimum to the last digits."""
        return dataclasses.replace(self, algorithm="gd", quorum=1.0, participation=1.0, over_selection=0.0, rounds=4_000,
                                   precision="fp64", client_state_replicas=False)

    def toml(self):
        return f"""name = "torture"
seed = {self.experiment_seed}
precision = "{self.precision}"
[problem]
kind = "logistic"
data = "synthetic"
samples = 60
dim = {self.dim}
regularizer = "l2"
lambda = 0.1
[clients]
count = {self.clients}
participation = {self.participation}
{f'latency = "{self.speeds}"' if self.speeds else ''}
[algorithm]
name = "{self.algorithm}"
{self.algorithm_keys()}
[run]
rounds = {self.rounds}
evaluate_every = {self.evaluate_every()}
[evaluation]
grad_norm = "every"
[server]
quorum = {self.quorum}
over_selection = {self.over_selection}
deadline_ms = {self.deadline_ms}
durability = "{self.durability}"
client_state_replicas = {str(self.client_state_replicas).lower()}
zstd = "{'off' if self.overlaps() else 'auto'}"
overlap = {str(self.overlaps()).lower()}
{f"[faults]{chr(10)}lost_replies = {self.lost}" if self.lost else ''}
"""

    def title(self):
        return (f"{self.kind}, {self.algorithm}, {self.sites}, quorum {self.quorum:g}, d = {self.dim}, "
                f"{'with' if self.remember else 'without'} --state, {'TLS' if self.secure else 'plain text'}")


def combinations(seed):
    """Returns all allowed combinations of algorithm, sites, quorum and --state, shuffled."""
    found = []
    for algorithm, sites, quorum, remember in itertools.product(ALGORITHMS, SITES, (1.0, 0.5), (True, False)):
        words = ALGORITHMS[algorithm][1].split()
        if quorum < 1 and "quorum" not in words:
            continue
        if not remember and ("restores" not in words or (sites == "adds" and algorithm not in ("gd", "fedavg"))):
            continue
        if sites == "adds" and "adds" not in words:
            continue
        found.append((algorithm, sites, quorum, remember))
    random.Random(f"combinations {seed}").shuffle(found)
    return found


def kind_of(index, quick):
    if index % 20 == 13 and not quick:
        return "silence"
    if index % 20 == 17:
        return "one command"
    if index % 20 == 6:
        return "resumed"
    return {4: "uploads", 8: "slow relay"}.get(index % 10, "usual")


def make(seed, index, quick):
    random_of = random.Random(f"plan {seed} {index}")
    kind = kind_of(index, quick)
    possible = combinations(seed)
    if kind == "slow relay":
        possible = [c for c in possible if c[1] in ("exact", "adds") and c[2] < 1]
        possible = [c for c in possible if c[0] in ("gd", "ef21", "fedavg", "scaffold")]
    if kind == "uploads":
        possible = [c for c in possible if c[0] in ("gd", "scaffold", "fedavg", "marina", "proxskip")]
    if kind == "one command":
        possible = [c for c in possible if c[1:] == ("flat", 1.0, False)]
    algorithm, sites, quorum, remember = possible[index % len(possible)]
    if kind == "resumed":
        algorithm, sites, quorum, remember = list(ASYNCHRONOUS)[index // 20 % len(ASYNCHRONOUS)], "flat", 1.0, False
    plan = Plan(
        seed=seed, index=index, kind=kind, algorithm=algorithm, sites=sites, quorum=quorum, remember=remember,
        clients=random_of.choice((3, 4, 4, 6)) if kind == "usual" else 4,
        participation=1.0, over_selection=0.0,
        client_state_replicas=sites != "adds" and algorithm not in ("ef14", "dasha_mvr"),
        durability=random_of.choice(("process", "process", "power")),
        precision="fp64" if sites == "adds" else random_of.choice(("fp64", "fp64", "fp32")),
        dim=20_000 if kind in ("uploads", "slow relay") else random_of.choice((11, 11, 40)) if kind == "usual" else 11,
        rounds=ROUNDS[kind] // (3 if quick else 1),
        deadline_ms=8_000 if kind == "silence" else random_of.choice((600, 1_000, 3_000)),
        experiment_seed=random_of.randrange(1 << 31),
        early=random_of.random() < 0.2 and kind == "usual",
        secure=kind == "usual" and index % 4 == 3,
        troubles=[])
    may_sample = algorithm in ("fedavg", "diana", "scaffold", "ef14")
    if quorum < 1 and may_sample and kind == "usual" and random_of.random() < 0.4:
        plan.participation, plan.over_selection = 0.5, 0.5
    if algorithm == "fednl":
        plan.dim, plan.rounds = 11, plan.rounds // 3
    if kind == "resumed":
        plan.speeds = random_of.choice(SPEEDS)
        plan.lost = random_of.choice((0.0, 0.0, 0.01))
        plan.kills = tuple((random_of.choice(("KILL", "KILL", "INT", "TERM")), random_of.uniform(0.2, 1.0))
                           for _ in range(3 if quick else 7))
    plan.troubles = draw_troubles(random_of, plan, quick)
    return plan


def draw_troubles(random_of, plan, quick):
    kinds = TROUBLES | (SECURE_TROUBLES if plan.secure else {})
    for kind in list(kinds):
        if kind.endswith("relay") and plan.relays() == 0:
            del kinds[kind]
    if not plan.has("restores") or (not plan.client_state_replicas and plan.algorithm not in ("gd", "fedavg")):
        del kinds["restore server"]
    if plan.kind == "slow relay":
        kinds = {"kill client": 1, "cut": 1, "delay": 1, "stop client": 1}
    if plan.kind == "uploads":
        kinds.update({"truncate": 20, "cut": 10, "throttle": 5})
    if plan.kind == "silence":
        kinds = {"kill client": 1, "cut": 1, "duplicate": 1, "hold": 1}
    count = TROUBLES_OF[plan.kind] // (2 if quick else 1)
    return [
        Trouble(after=min(random_of.expovariate(1 / 0.15), 0.6),
                kind=random_of.choices(list(kinds), list(kinds.values()))[0],
                target=random_of.randrange(1 << 16), seconds=random_of.choice((0.02, 0.1, 0.3, 0.6, 1.2)),
                share=random_of.random(), number=random_of.randrange(1 << 16))
        for _ in range(count)
    ]
