"""Makes the faults of a plan, and ends them."""
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import proxy
from programs import die_with_parent

SLOW_LINK = 0.003  # seconds
SLOW_RELAY = 100_000  # bytes a second
RESHUFFLE_EVERY = 0.05  # seconds; with a quorum below 1, the slow clients change after so long
LONGEST_END = 40  # seconds; limit for a program to stop after SIGTERM
HANDSHAKES = 200  # number of handshakes in a flood
LONGEST_REFUSAL = 60  # seconds; limit for a program with the key of another role to end


class Failed(Exception):
    """A condition of the run is violated."""


class Maker:
    def __init__(self, run, random_of):
        self.run, self.plan, self.random = run, run.plan, random_of
        self.undo = []  # (time, function to call)
        self.counts = {}
        self.bad_connections = []
        self.floods = []  # threads
        self.impostors = []  # (role, process, log, time by which it must have ended)
        self.restore = False  # the next start of the server restores an older copy of its state
        self.reshuffled = 0.0

    def begin(self):
        """Begins the faults that last from the first round."""
        if self.plan.kind == "slow relay":
            self.run.links["relay 0"].set(rate=SLOW_RELAY)
        if self.plan.kind == "silence":  # otherwise the run ends before the silence
            for link in self.run.links.values():
                link.set(delay=SLOW_LINK)

    def look(self, now):
        """Ends the faults whose time is over, and checks impostors."""
        for when, what in [u for u in self.undo if u[0] <= now]:
            self.undo.remove((when, what))
            what()
        for impostor in list(self.impostors):
            self.look_at_impostor(*impostor, now)
        if self.plan.quorum < 1 and now - self.reshuffled >= RESHUFFLE_EVERY:
            self.reshuffled = now
            for k in range(self.plan.clients):
                self.run.links[f"client {k}"].set(delay=self.random.choice((0.0, SLOW_LINK)))

    def soon(self, seconds, what):
        self.undo.append((time.monotonic() + seconds, what))

    def make(self, trouble):
        word, _, role = trouble.kind.partition(" ")
        self.counts[trouble.kind] = self.counts.get(trouble.kind, 0) + 1
        self.run.note(f"{trouble.kind} {trouble.target} {trouble.seconds} {trouble.share:.2f}")
        if trouble.kind == "unauthenticated":
            self.open_bad_connections(trouble)
        elif trouble.kind == "handshakes":
            self.flood(trouble)
        elif trouble.kind == "mix roles":
            self.mix_roles(trouble)
        elif trouble.kind == "restore server":
            self.restore = True  # takes effect when the server starts again
            self.harm(self.run.server, "kill", trouble)
        elif word in ("kill", "stop", "term") and role:
            for program in self.victims(role, trouble.target):
                self.harm(program, word, trouble)
        elif trouble.kind == "cut all":
            for link in self.run.links.values():
                link.end_connections(hard=trouble.share < 0.5)
        elif trouble.kind == "hold some":  # for longer than the deadline: clients are asked again, and reply twice
            for k, link in enumerate(self.run.links.values()):
                if trouble.target >> k & 1:
                    seconds = self.plan.deadline_ms / 1000 * (1 + (trouble.number >> k & 3) / 4)
                    link.set(held=("up", True))
                    self.soon(min(seconds, 3), lambda link=link: link.set(held=("up", False)))
        else:
            links = list(self.run.links.values())
            self.harm_link(links[trouble.target % len(links)], trouble)

    def victims(self, role, target):
        if role == "server":
            return [self.run.server]
        if role == "relay":
            return [self.run.relays[target % len(self.run.relays)]]
        if role == "clients":  # about half of the clients
            return [c for k, c in enumerate(self.run.clients) if target >> k & 1]
        return [self.run.clients[target % len(self.run.clients)]]

    def harm(self, program, word, trouble):
        if not program.alive() or program.killed:
            return
        if word == "stop":
            program.send(signal.SIGSTOP)
            process = program.process
            self.soon(trouble.seconds, lambda: self.resume_process(program, process))
            return
        self.forget(program)
        program.send(signal.SIGKILL if word == "kill" else signal.SIGTERM)
        if word == "term":
            process = program.process

            def must_be_gone():
                if program.process is process and program.alive():
                    raise Failed(f"{program.role} did not end after SIGTERM")

            self.soon(LONGEST_END * self.run.patience, must_be_gone)

    def resume_process(self, program, process):
        if program.process is process and program.alive():
            program.send(signal.SIGCONT)

    def forget(self, program):
        """Drops bytes for duplicates: a network may repeat the bytes of a living process, but not of a dead one."""
        if program in self.run.clients:
            k = self.run.clients.index(program)
            self.run.links[f"client {k}"].forget()
            if self.plan.relay_of(k) is not None:
                self.run.links[f"relay {self.plan.relay_of(k)}"].forget()
        if program in self.run.relays:
            self.run.links[program.role].forget()

    def harm_link(self, link, trouble):
        kind = trouble.kind
        direction = proxy.DIRECTIONS[trouble.share < 0.5]
        if kind in ("cut", "reset"):
            link.end_connections(hard=kind == "reset")
        elif kind == "truncate":
            link.set(truncate=(direction, trouble.number * max(1, self.plan.dim // 1000) // 8))
        elif kind == "delay":
            link.set(delay=0.002 + 0.03 * trouble.share)
            self.soon(trouble.seconds, lambda: link.set(delay=0.0))
        elif kind == "throttle":
            link.set(rate=20_000 + 2_000_000 * trouble.share ** 3)
            self.soon(trouble.seconds, lambda: link.set(rate=None))
        elif kind == "hold":
            link.set(held=(direction, True))
            self.soon(trouble.seconds, lambda: link.set(held=(direction, False)))
        elif kind == "lose":
            link.set(lossy=(direction, True))
            self.soon(trouble.seconds, lambda: (link.set(lossy=(direction, False)), link.end_holed()))
        elif kind == "duplicate":
            copies = link.duplicate(linger=trouble.seconds)
            self.run.note(f"{copies} duplicates")

    def open_bad_connections(self, trouble):
        """Opens connections that send nothing or garbage for some time."""
        address = self.run.server.listens_at()
        if address is None:
            return
        for k in range(20):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(address)
            self.bad_connections.append(connection)
        noise = self.random.randbytes(200)

        def speak():
            for k, connection in enumerate(self.bad_connections):
                try:
                    connection.send((b"", b"GWR1" + noise, noise, b"GET / HTTP/1.1\r\n\r\n")[k % 4])
                except OSError:
                    pass

        self.soon(0.02, speak)
        self.soon(trouble.seconds, self.close_bad_connections)

    def flood(self, trouble):
        """Begins TLS handshakes, and leaves each once the server has done its part."""
        address = self.run.server.listens_at()
        if address is None:
            return
        until = time.monotonic() + trouble.seconds
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def handshakes():
            for _ in range(HANDSHAKES):
                if time.monotonic() > until:
                    return
                try:
                    with socket.create_connection(address, timeout=1) as raw, context.wrap_socket(raw):
                        pass
                except OSError:  # refused or cut off, as expected
                    pass

        thread = threading.Thread(target=handshakes, daemon=True)
        thread.start()
        self.floods.append(thread)

    def mix_roles(self, trouble):
        """Starts a relay with a client's key, or a client with a relay's key. The server must refuse it."""
        run, relays = self.run, self.plan.relays()
        address = run.server.listens_at()
        if address is None or self.impostors:
            return
        upstream = "%s:%d" % address
        name = f"impostor{self.counts[trouble.kind]}"
        if relays and trouble.share < 0.5:
            role = "a client with the key of a relay"
            argv = ["gradwire-client", "--server", upstream, "--data", f"synthetic#0/{self.plan.clients}",
                    "--identity", f"identity-of-relay{trouble.target % relays}"]
        else:
            role = "a relay with the key of a client"
            theirs = run.folder / f"identity-of-client{trouble.target % self.plan.clients}"
            if not (theirs / "client").exists():  # it has not enrolled yet
                return
            ours = run.folder / name
            shutil.copytree(theirs, ours)
            for file in ("server.pem", "server.key"):
                shutil.copy(run.folder / "identity" / file, ours / file)
            argv = ["gradwire-server", "relay", "--upstream", upstream, "--listen", address[0] + ":0", "--state",
                    name + "-state", "--aggregate", "--identity", name]
        argv = [str(run.bin / argv[0]), *argv[1:], "--give-up-after-ms", "5000"]
        path = run.folder / (name + ".log")
        with open(path, "w") as log:
            process = subprocess.Popen(argv, cwd=run.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       preexec_fn=die_with_parent)
        self.impostors.append((role, process, path, time.monotonic() + LONGEST_REFUSAL * run.patience))

    def look_at_impostor(self, role, process, log, due, now):
        code = process.poll()
        if code is None and now < due:
            return
        self.impostors.remove((role, process, log, due))
        if code is None:
            process.kill()
            process.wait()
            raise Failed(f"{role} still runs after {LONGEST_REFUSAL * self.run.patience:g} s")
        said = log.read_text(errors="replace")
        if code not in (1, 2) or "joined" in said:
            raise Failed(f"{role} was accepted, or ended with the wrong code ({code}): see {log.name}")

    def end_impostors(self):
        """Waits for the end of each impostor, and checks it."""
        for thread in self.floods:
            thread.join()
        while self.impostors:
            self.look_at_impostor(*self.impostors[0], time.monotonic())
            time.sleep(0.02)

    def close_bad_connections(self):
        while self.bad_connections:
            self.bad_connections.pop().close()

    def fall_silent(self):
        """Makes one link lose all bytes in one direction. One end must notice this after 45 s without bytes."""
        names = [n for n in self.run.links if not self.run.relays or n.startswith("relay")]
        name = names[self.plan.experiment_seed % len(names)]
        direction = proxy.DIRECTIONS[self.plan.experiment_seed // 7 % 2]
        self.run.note(f"{name} is silent {direction}")
        link = self.run.links[name]
        silent = list(link.connections)
        link.set(lossy=(direction, True))
        self.run.look_for(0.5)
        link.set(lossy=(direction, False))  # new connections work
        self.run.wait(lambda: self.run.over() or not any(c.open for c in silent), 100,
                      "a silent connection was not closed")

    def heal(self):
        """Ends all faults."""
        self.run.note("heal")
        self.undo = [u for u in self.undo if u[1].__name__ == "must_be_gone"]
        self.close_bad_connections()
        for link in self.run.links.values():
            link.heal()
        for program in self.run.programs:
            program.send(signal.SIGCONT)
