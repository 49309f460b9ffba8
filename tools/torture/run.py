"""One run: the programs, their bad network, the planned faults, and the checks of its end."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import traceback

import check
import proxy
import trouble
from programs import Program, die_with_parent, members
from trouble import Failed

PAUSE = 0.02  # seconds between two looks at the programs
SAMPLE_EVERY = 0.1
GIVE_UP_MS = 300_000  # time limit of clients and relays without a server; longer than any run
FAREWELLS = 6  # limit of server starts for clients that missed the shutdown
DEADLINES_OVER = 8  # limit of server ends after ten deadlines without enough replies

# Allowed growth of a server once rounds are done, in bytes; docs/contributing/reliability_tests.md has the figures.
MEMORY = 32 << 20
MODELS = 24  # additional vectors of d numbers per client
RELAY_HOLDS = (64 + 256) << 20  # bytes that a relay may hold for the server, and with --aggregate for its site
CLIENT_STATE, CLIENT_MODELS = 4 << 20, 32  # limit of a client's --state: bytes, and vectors of d numbers
DESCRIPTORS = 24  # limit of descriptors that are not connections


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a snapshot has replaced it
        return 0


class Run:
    def __init__(self, plan, binaries, folder, patience):
        self.plan, self.bin, self.folder, self.patience = plan, pathlib.Path(binaries), pathlib.Path(folder), patience
        self.random = random.Random(f"run {plan.seed} {plan.index}")
        self.began = time.monotonic()
        self.network = proxy.Network()
        self.sampled = 0.0
        self.farewells = self.deadlines_over = self.longest_log = 0
        self.is_told = False  # the server ended well, and the run is finished
        self.set_up()
        self.trouble = trouble.Maker(self, self.random)

    # ---- setup ----

    def set_up(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "run.toml").write_text(self.plan.toml())
        if self.plan.speeds.startswith("file:"):
            lines = [" ".join(f"{self.random.uniform(0.1, 3):.3f}" for _ in range(17 + k)) for k in range(self.plan.clients)]
            (self.folder / "speeds.txt").write_text("\n".join(lines) + "\n")
        self.state = self.folder / "state"
        host = "127.%d.%d." % (os.getpid() >> 8 & 255, os.getpid() & 255)  # other runs use other addresses
        inside, outside = host + "2", host + "1"
        tokens = self.make_identities((inside, outside)) if self.plan.secure else []
        server_argv = [self.bin / "gradwire-server", "run.toml", "--listen", inside + ":0", "--state", "state"]
        server_argv += ["--identity", "identity"] if self.plan.secure else []
        self.server = self.program("server", server_argv, self.state / "address")
        self.network.start()
        self.links = {}
        self.relays, self.clients = [], []
        for k in range(self.plan.relays()):
            link = self.links[f"relay {k}"] = self.network.link(outside, self.server.listens_at)
            argv = [self.bin / "gradwire-server", "relay", "--upstream", link.address, "--listen", inside + ":0",
                    "--state", f"relay{k}", "--give-up-after-ms", str(GIVE_UP_MS)]
            if self.plan.sites == "adds":
                argv.append("--aggregate")
            argv += ["--identity", f"identity-of-relay{k}"] if self.plan.secure else []
            self.relays.append(self.program(f"relay {k}", argv, self.folder / f"relay{k}" / "address"))
        for k in range(self.plan.clients):
            relay = self.plan.relay_of(k)
            next_program = self.server if relay is None else self.relays[relay]
            link = self.links[f"client {k}"] = self.network.link(outside, next_program.listens_at)
            argv = [self.bin / "gradwire-client", "--server", link.address,
                    "--data", f"synthetic#{k}/{self.plan.clients}", "--give-up-after-ms", str(GIVE_UP_MS)]
            if self.plan.remember:
                argv += ["--state", f"client{k}"]
            if self.plan.secure:
                argv += ["--identity", f"identity-of-client{k}", "--token", tokens[k]]
            self.clients.append(self.program(f"client {k}", argv))
        self.programs = [self.server, *self.relays, *self.clients]

    def make_identities(self, hosts):
        """Makes the identities of server and relays. Returns the tokens of the clients."""
        def command(*words):
            argv = [self.bin / "gradwire-server", *words] + [word for host in hosts for word in ("--host", host)]
            return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=True,
                                  preexec_fn=die_with_parent, timeout=60 * self.patience).stdout

        tokens = command("init", "identity", "--clients", str(self.plan.clients)).split()
        for k in range(self.plan.relays()):
            command("enroll", f"relay-{k}", "--identity", "identity", "--relay", f"identity-of-relay{k}")
        return tokens

    def program(self, role, argv, address=None):
        log = self.folder / (role.replace(" ", "") + ".log")
        return Program(role, [str(a) for a in argv], log, self.folder, address)

    def note(self, line):
        with open(self.folder / "events.log", "a") as log:
            log.write(f"{time.monotonic() - self.began:8.3f} {line}\n")

    def rows(self):
        try:
            return (self.state / "metrics.csv").read_bytes().count(b"\n") - 1
        except OSError:
            return 0

    def over(self):
        return check.outcome(self.state) == "finished"

    # ---- the run ----

    def go(self):
        if self.plan.quorum == 1 or self.plan.converges():
            self.simulate("reference", self.plan)
        if self.plan.converges():
            self.simulate("optimum", self.plan.optimum())
        if self.plan.kind == "one command":
            return self.run_in_one_command()
        if self.plan.kind == "resumed":
            return self.run_and_resume()
        for program in self.programs:
            program.start()
        if not self.plan.early:
            self.wait(lambda: self.rows() >= 2, 60, "the run did not begin")
        self.trouble.begin()
        for planned in self.plan.troubles:
            self.look_for(planned.after)
            if self.over():
                break
            self.trouble.make(planned)
        if self.plan.kind == "silence" and not self.over():
            self.trouble.fall_silent()
        if self.plan.kind == "slow relay":
            all_rows = len(check.rounds_with_rows(self.plan))
            self.wait(lambda: self.rows() >= all_rows - 1, 150, "a slow relay delays all others: the run did not end")
        self.trouble.heal()
        self.wait(self.is_finished, 120, "the run did not end")
        self.trouble.end_impostors()
        found = check.differences(self.plan, self.state, self.folder / "reference")
        if self.plan.converges() and not found and check.is_off(self.plan, self.folder):
            self.go_on_in_peace()
            found = check.is_off(self.plan, self.folder)
        found += self.used_too_much()
        if found:
            raise Failed("; ".join(found))

    def go_on_in_peace(self):
        """Runs more rounds with all replies. A run that was only late then reaches the optimum; one that miscounts does not."""
        self.note("more rounds")
        self.farewells = 0
        for key, value in (("run.rounds", 2 * self.plan.rounds), ("server.quorum", 1), ("server.over_selection", 0)):
            self.server.argv += ["--set", f"{key}={value}"]
        (self.state / "summary.json").unlink()
        for program in self.programs:
            program.start()
        self.wait(self.is_finished, 120, "the run with more rounds did not end")

    def run_in_one_command(self):
        """Checks that no program outlives the gradwire run --transport tcp that started it."""
        self.programs = []
        argv = [str(self.bin / "gradwire"), "run", "run.toml", "--out", "state", "--transport", "tcp", "--quiet"]
        program = self.program("gradwire", argv)
        for number in (signal.SIGKILL, signal.SIGTERM, None):
            program.start()
            if number is None:
                break
            self.wait(lambda: len(members(os.getsid(0))) > self.plan.clients + 1, 30,
                      "the programs of gradwire run did not start")
            time.sleep(self.random.random())
            program.send(number)
            self.wait(lambda: not members(os.getsid(0)), 20, "programs outlived the gradwire run that started them")
            program.process.wait()
        code = program.process.wait(120 * self.patience)
        if code != 0:
            raise Failed(f"gradwire run --transport tcp ended with {code}")
        found = check.differences(self.plan, self.state, self.folder / "reference")
        hidden = [p.name for p in self.folder.iterdir() if p.name.startswith(".")]
        if found or hidden:
            raise Failed("; ".join(found) or f"hidden folders remain: {hidden}")

    def run_and_resume(self):
        """Checks that a run in one process that is repeatedly killed and resumed gives the bits of an uninterrupted one."""
        self.programs = []
        argv = [str(self.bin / "gradwire"), "run", "run.toml", "--out", "state", "--resume=auto",
                "--checkpoint-every", "0.1", "--threads", "1", "--quiet"]
        program = self.program("gradwire", argv)
        for name, seconds in self.plan.kills:
            program.start()
            try:
                code = program.process.wait(seconds)
            except subprocess.TimeoutExpired:
                program.send(signal.Signals[f"SIG{name}"])
                code = program.process.wait(30 * self.patience)
                kind = f"{name.lower()} run"
                self.trouble.counts[kind] = self.trouble.counts.get(kind, 0) + 1
            self.note(f"gradwire ended with {code}")
            if code == 0:
                break
            if code != (-signal.SIGKILL if name == "KILL" else 1):
                raise Failed(f"gradwire run that was sent SIG{name} ended with {code}: see gradwire.log")
        if code != 0:
            program.start()
            code = program.process.wait(120 * self.patience)
        if code != 0:
            raise Failed(f"gradwire run --resume=auto ended with {code}: see gradwire.log")
        found = check.differences(self.plan, self.state, self.folder / "reference")
        hidden = [p.name for p in self.folder.iterdir() if p.name.startswith(".")]
        if found or hidden:
            raise Failed("; ".join(found) or f"hidden folders remain: {hidden}")

    def simulate(self, name, plan):
        """Runs the plan with gradwire run."""
        file = self.folder / f"{name}.toml"
        file.write_text(plan.toml())
        with open(self.folder / f"{name}.log", "w") as log:
            argv = [self.bin / "gradwire", "run", file, "--out", self.folder / name, "--threads", "1", "--quiet"]
            if plan.dim >= 128:
                argv += ["--transport", "encoded"]  # in memory, bytes are counted without compression
            code = subprocess.run(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stderr=log,
                                  preexec_fn=die_with_parent, timeout=120 * self.patience).returncode
        if code != 0:
            raise Failed(f"gradwire run ended with {code}: see {name}.log")

    def wait(self, done, seconds, what):
        end = time.monotonic() + seconds * self.patience
        while not done():
            if time.monotonic() > end:
                raise Failed(f"{what} within {seconds * self.patience:g} s")
            self.look_for(PAUSE)

    def look_for(self, seconds):
        """Watches the programs for so many seconds."""
        end = time.monotonic() + seconds
        while True:
            self.look()
            now = time.monotonic()
            if now >= end:
                return
            time.sleep(min(PAUSE, end - now))

    def look(self):
        now = time.monotonic()
        self.trouble.look(now)
        for program in self.programs:
            if program.process is None or program.done:
                continue
            program.look(now)
            code = program.process.poll()
            if code is not None and program.due is None:
                self.ended(program, code)
            if program.due is not None and now >= program.due:
                self.start_again(program)
        if now - self.sampled >= SAMPLE_EVERY:
            self.sampled = now
            self.longest_log = max([self.longest_log, *map(size_of, self.state.glob("log-*.bin"))])
            at_work = self.rows() >= 2
            for program in [self.server, *self.relays]:
                if program.alive():
                    links = [link for link in self.links.values() if link.target == program.listens_at]
                    connections = sum(link.open_sockets() for link in links) + len(self.trouble.bad_connections)
                    program.usage.sample(at_work, connections)

    def start_again(self, program):
        if program is self.server and self.is_told and all(c.done for c in self.clients):
            program.done = True
            return
        if program is self.server and not self.is_told:
            self.keep_or_restore()
        self.note(f"start {program.role}")
        program.start()

    def keep_or_restore(self):
        """Copies the state of a dead server, or restores an older copy, as an operator does after a disk failure."""
        older = self.folder / "older-state"
        if not self.state.exists():
            return
        if self.trouble.restore and older.exists():
            self.note("restore the state of the server")
            shutil.rmtree(self.state)
            shutil.copytree(older, self.state)
        elif self.random.random() < 0.5 or not older.exists():
            shutil.rmtree(older, ignore_errors=True)
            shutil.copytree(self.state, older)
        self.trouble.restore = False

    # ---- the ends of processes ----

    def ended(self, program, code):
        over = self.over()
        self.note(f"{program.role} ended with {code}")
        now = time.monotonic()
        if program is self.server:
            self.is_told = code == 0 and over
        if code == 0 and over and program is self.server:
            self.farewells += 1  # the restarted server tells the clients that missed the shutdown
            if self.farewells > FAREWELLS:
                raise Failed("clients did not learn that the run is over")
            program.due = now + 0.2 * self.farewells
        elif code == 0 and over:
            program.done = True
        elif program.killed == signal.SIGKILL and code == -signal.SIGKILL:
            program.due = now + self.random.choice((0.0, 0.02, 0.1, 0.3))
        elif program.killed == signal.SIGTERM and (code == 0 or self.may_end_by_term(program, code)):
            program.due = now + self.random.choice((0.0, 0.1))
        elif program is self.server and code == 1 and "after 10 deadlines" in program.said():
            self.deadlines_over += 1
            if self.deadlines_over > DEADLINES_OVER:
                raise Failed(f"the server ended {self.deadlines_over} times because clients did not answer")
            program.due = now + 0.1
        else:
            said = [line for line in program.said().splitlines() if line.strip()]
            raise Failed(f"{program.role} ended with {code}: {said[-1] if said else 'no output'}")

    def may_end_by_term(self, program, code):
        """Returns whether SIGTERM may end the program. Clients do not handle it, nor do programs that just started."""
        return code == -signal.SIGTERM and (program in self.clients or time.monotonic() - program.started < 2)

    def is_finished(self):
        if not all(p.done for p in [self.server, *self.clients]):
            return False
        for relay in self.relays:  # a relay that started after the end waits for a server
            if not relay.done and relay.alive() and not relay.killed and time.monotonic() - relay.started > 2:
                relay.send(signal.SIGTERM)
        return all(p.done for p in self.relays)

    # ---- the end of the run ----

    def used_too_much(self):
        found = []
        bound = MEMORY + MODELS * self.plan.clients * self.plan.dim * 8
        log = self.longest_log  # a server reads the whole log when it starts
        for program in [self.server, *self.relays]:
            usage, most = program.usage, bound + (log if program is self.server else RELAY_HOLDS)
            if usage.growth > most:
                found.append(f"the memory of {program.role} grew by {usage.growth >> 20} MB, more than {most >> 20} MB")
            if usage.most_unexplained > DESCRIPTORS:
                found.append(f"{program.role} had {usage.most_unexplained} descriptors that are not connections for "
                             f"{usage.LEAK_SECONDS} s")
        most = CLIENT_STATE + CLIENT_MODELS * self.plan.dim * 8
        for k in range(self.plan.clients):
            size = folder_bytes(self.folder / f"client{k}")
            if size > most:
                found.append(f"the state of client {k} has {size >> 20} MB, more than {most >> 20} MB")
        return found

    def end(self):
        """Ends all programs. Returns the processes that should have ended before."""
        for program in self.programs:
            if program.alive():
                program.process.kill()
            if program.process is not None:
                program.process.wait()
        for _, process, _, _ in self.trouble.impostors:
            process.kill()
            process.wait()
        orphans = members(os.getsid(0))
        for pid, _ in orphans:
            os.kill(pid, signal.SIGKILL)
        self.trouble.close_bad_connections()
        self.network.stop()
        return orphans


def folder_bytes(folder):
    return sum(p.stat().st_size for p in folder.iterdir()) if folder.is_dir() else 0


def one(plan, binaries, folder, patience):
    """Runs the plan. Returns a dictionary for the table."""
    run = None
    began = time.monotonic()
    failure = ""
    try:
        run = Run(plan, binaries, folder, patience)
        run.go()
    except Failed as failed:
        failure = str(failed)
    except Exception as error:  # an error of this script, or of a program that left no results
        failure = f"{type(error).__name__}: {error}"
        with open(pathlib.Path(folder) / "events.log", "a") as log:
            traceback.print_exc(file=log)
    result = {"index": plan.index, "title": plan.title(), "counts": {}, "growth": 0, "largest": 0, "starts": 0}
    if run is not None:
        try:
            orphans = run.end()
            if orphans and not failure:
                failure = f"processes still run: {orphans}"
        except Exception as error:
            failure = failure or f"{type(error).__name__}: {error}"
        usage = run.server.usage
        result.update(
            counts=run.trouble.counts, rounds=plan.rounds, starts=sum(p.starts for p in run.programs),
            growth=usage.growth, largest=usage.largest, descriptors=usage.most_unexplained,
            slowest_start=run.server.slowest_start, gave_up=run.deadlines_over,
            relay_growth=max((r.usage.growth for r in run.relays), default=0),
            client_state=max(folder_bytes(run.folder / f"client{k}") for k in range(plan.clients)))
    result.update(failure=failure, seconds=time.monotonic() - began)
    return result
