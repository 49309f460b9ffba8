"""The programs of a run as processes, their memory and descriptors, and the processes that outlive a run."""
import ctypes
import os
import pathlib
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """One role of a run: a process that is started again when it was killed."""

    def __init__(self, role, argv, log, folder, address=None):
        self.role, self.argv, self.log, self.folder = role, argv, log, folder
        self.address = address  # the file with its address; None if the program does not listen
        self.process = None
        self.started = 0.0
        self.starts = 0
        self.killed = None  # the signal that must end it
        self.stopped = False
        self.due = None  # when to start it again
        self.done = False  # it ended well and is not started again
        self.usage = Usage()
        self.waits_to_listen = False
        self.slowest_start = 0.0  # seconds until it listened

    def start(self):
        if self.address is not None:
            self.address.unlink(missing_ok=True)
        with open(self.log, "a") as log:
            log.write(f"--- start {self.starts}: {' '.join(self.argv)}\n")
            log.flush()
            self.process = subprocess.Popen(self.argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=die_with_parent)
        self.started = time.monotonic()
        self.starts += 1
        self.killed, self.due, self.stopped, self.done = None, None, False, False
        self.waits_to_listen = self.address is not None
        self.usage.begin(self.process.pid)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if not self.alive():
            return False
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.killed = number
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self.stopped = number == signal.SIGSTOP
        elif number == signal.SIGTERM and self.stopped:
            self.process.send_signal(signal.SIGCONT)
            self.stopped = False
        self.process.send_signal(number)
        return True

    def listens_at(self):
        """Returns (host, port), or None if the program does not listen yet."""
        if not self.alive():
            return None
        try:
            text = self.address.read_text()
        except OSError:
            return None
        if not text.endswith("\n"):
            return None
        host, port = text.strip().rsplit(":", 1)
        return host, int(port)

    def look(self, now):
        if self.waits_to_listen and self.stopped:
            self.waits_to_listen = False  # the time of a stopped process is not known
        elif self.waits_to_listen and self.address.exists():
            self.waits_to_listen = False
            self.slowest_start = max(self.slowest_start, now - self.started)

    def said(self):
        """Returns the output of the current process, or of the last one."""
        return pathlib.Path(self.log).read_text(errors="replace").rsplit("--- start ", 1)[-1]


class Usage:
    """Memory and descriptors of a program's processes, sampled."""

    LEAK_SECONDS = 6  # a leak has unexplained descriptors in every sample for so long

    def __init__(self):
        self.pid = None
        self.largest = 0  # bytes; maximum over the processes of the program
        self.growth = 0  # bytes above the base of the process
        self.most_unexplained = 0  # descriptors; the largest minimum over LEAK_SECONDS
        self.begin(None)

    def begin(self, pid):
        self.pid = pid
        self.base = None
        self.samples = []  # (time, descriptors without an explanation)

    def sample(self, at_work, sockets):
        """Takes a sample. `at_work`: the run does rounds; the lowest memory then is the base.
        `sockets`: the number of known connections of the program."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:
                memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))
        except (OSError, IndexError):
            return
        if memory == 0:  # the process is ending
            return
        now = time.monotonic()
        self.largest = max(self.largest, memory)
        if at_work:
            self.base = memory if self.base is None else min(self.base, memory)
            self.growth = max(self.growth, memory - self.base)
        self.samples.append((now, descriptors - sockets))
        if now - self.samples[0][0] >= self.LEAK_SECONDS:
            self.most_unexplained = max(self.most_unexplained, min(n for _, n in self.samples))
            self.samples = [s for s in self.samples if now - s[0] < self.LEAK_SECONDS]


def members(session):
    """Returns (pid, name) of the other processes of a session. Process groups do not suffice: gradwire run makes new ones."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                head, _, tail = file.read().rpartition(")")
        except OSError:
            continue
        state, _, _, its_session = tail.split()[:4]
        if int(its_session) == session and state != "Z":
            found.append((int(name), head.partition("(")[2]))
    return found
