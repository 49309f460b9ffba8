"""A bad network on loopback. Its links cut, truncate, delay, throttle, silence and duplicate connections."""
import collections
import errno
import selectors
import socket
import struct
import threading
import time

CHUNK = 1 << 16
MOST_WAITING = 1 << 16  # limit of the bytes that wait in one direction; then the sender waits
MOST_KEPT = 1 << 20  # limit of the bytes of a connection that can be sent again
DIRECTIONS = ("up", "down")  # to the server and from the server


class Pipe:
    """One direction of a connection."""

    def __init__(self, conn, name, source, sink):
        self.conn, self.name, self.source, self.sink = conn, name, source, sink
        self.waiting = collections.deque()  # (when it may be sent, bytes)
        self.bytes = 0
        self.ended = False  # the source has sent everything
        self.holed = False  # bytes were lost, so no later bytes may arrive
        self.budget_at = 0.0  # when the next byte may leave, if throttled

    def wants_to_read(self):
        return not self.ended and self.bytes < MOST_WAITING and not self.conn.link.held[self.name]

    def blocked(self, now):
        """Returns whether bytes wait for something other than the sink."""
        return bool(self.waiting) and (
            self.waiting[0][0] > now or self.conn.link.held[self.name] or self.budget_at > now)


class Connection:
    """A connection through a link: from a program (front) to its server (back). A duplicate has no front."""

    def __init__(self, link, front, back):
        self.link, self.front, self.back = link, front, back
        self.pipes = {"up": Pipe(self, "up", front, back), "down": Pipe(self, "down", back, front)}
        self.kept = bytearray()  # all bytes sent up so far; None if they are too many or the process is dead
        self.copies = []
        self.open = True
        self.close_at = None  # time to close a duplicate after its original has closed

    def sockets(self):
        return [s for s in (self.front, self.back) if s is not None]


class Link:
    """An address to which programs connect. It forwards to a target that may change."""

    def __init__(self, net, host, target):
        self.net, self.target = net, target  # target() returns (host, port), or None while it does not listen
        self.listener = socket.create_server((host, 0), backlog=64)
        self.listener.setblocking(False)
        self.address = "%s:%d" % self.listener.getsockname()[:2]
        self.connections = []
        self.delay, self.rate = 0.0, None  # seconds; bytes per second
        self.held = dict.fromkeys(DIRECTIONS, False)
        self.lossy = dict.fromkeys(DIRECTIONS, False)
        self.truncate = {}  # by direction: number of bytes that still pass before the connection ends

    # ---- faults; callable from any thread ----

    def end_connections(self, hard):
        with self.net.lock:
            for conn in list(self.connections):
                self.net.close(conn, hard)

    def set(self, **faults):
        """Sets faults: delay, rate; held or lossy = (direction, true or false); truncate = (direction, bytes)."""
        with self.net.lock:
            for name, value in faults.items():
                if name in ("held", "lossy", "truncate"):
                    getattr(self, name)[value[0]] = value[1]
                else:
                    setattr(self, name, value)
            for conn in self.connections:
                self.net.watch(conn)
        self.net.wake()

    def end_holed(self):
        """Closes the connections that have lost bytes, because they cannot continue."""
        with self.net.lock:
            for conn in list(self.connections):
                if any(pipe.holed for pipe in conn.pipes.values()):
                    self.net.close(conn, True)

    def duplicate(self, linger):
        """Duplicates each connection: a copy repeats all bytes sent up so far, and all later ones.
        The copy stays for `linger` seconds after the original has closed. Returns the number of copies."""
        with self.net.lock:
            originals = [c for c in self.connections if c.front is not None and c.kept and not c.copies]
            for conn in originals:
                copy = self.net.connect(self, None)
                if copy is None:
                    return 0
                copy.linger = linger
                copy.pipes["up"].waiting.append((0.0, bytes(conn.kept)))
                conn.copies.append(copy)
                self.net.watch(copy)
            self.net.wake()
            return len(originals)

    def forget(self):
        """Drops the bytes for later duplicates, because the program that sent them is dead."""
        with self.net.lock:
            for conn in self.connections:
                conn.kept = None

    def heal(self):
        with self.net.lock:
            self.truncate.clear()
            self.delay, self.rate = 0.0, None
            for direction in DIRECTIONS:
                self.held[direction] = self.lossy[direction] = False
            for conn in list(self.connections):
                self.net.watch(conn)
        self.end_holed()
        self.net.wake()

    def open_sockets(self):
        """Returns the number of sockets that the target has open for this link."""
        with self.net.lock:
            return len(self.connections)


class Network(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.lock = threading.RLock()
        self.selector = selectors.DefaultSelector()
        self.links = []
        self.masks = {}  # by socket: its registered events
        self.blocked = set()  # pipes that wait for a time
        self.lingering = set()
        self.stopping = False
        self.bell, self.button = socket.socketpair()
        self.bell.setblocking(False)
        self.button.setblocking(False)
        self.selector.register(self.bell, selectors.EVENT_READ, None)
        self.ends = collections.Counter()

    def link(self, host, target):
        with self.lock:
            link = Link(self, host, target)
            self.links.append(link)
            self.selector.register(link.listener, selectors.EVENT_READ, link)
        self.wake()
        return link

    def wake(self):
        try:
            self.button.send(b"!")
        except BlockingIOError:
            pass

    def stop(self):
        self.stopping = True
        self.wake()
        self.join()
        for link in self.links:
            link.listener.close()
            for conn in list(link.connections):
                self.close(conn, True)
        self.selector.close()
        self.bell.close()
        self.button.close()

    # ---- the loop ----

    def run(self):
        while not self.stopping:
            ready = self.selector.select(0.002 if self.blocked else 0.02 if self.lingering else 1)
            with self.lock:
                for key, mask in ready:
                    self.handle(key, mask)
                now = time.monotonic()
                for pipe in list(self.blocked):
                    if not pipe.blocked(now):
                        self.blocked.discard(pipe)
                        self.flush(pipe)
                for conn in [c for c in self.lingering if c.close_at <= now]:
                    self.close(conn, False)

    def handle(self, key, mask):
        if key.data is None:
            self.bell.recv(CHUNK)
        elif isinstance(key.data, Link):
            self.accept(key.data)
        elif key.data.open:
            conn = key.data
            reads, writes = ("up", "down") if key.fileobj is conn.front else ("down", "up")
            if mask & selectors.EVENT_WRITE:
                self.flush(conn.pipes[writes])
            if conn.open and mask & selectors.EVENT_READ:
                self.read(conn.pipes[reads])

    def accept(self, link):
        try:
            front = link.listener.accept()[0]
        except OSError:
            return
        self.connect(link, front)

    def connect(self, link, front):
        target = link.target()
        if target is None:
            if front is not None:
                front.close()
            return None
        back = socket.socket()
        for s in (front, back):
            if s is None:
                continue
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK)  # so the sender soon notices a slow link
        code = back.connect_ex(target)
        if code not in (0, errno.EINPROGRESS):
            for s in (front, back):
                if s is not None:
                    s.close()
            return None
        conn = Connection(link, front, back)
        link.connections.append(conn)
        self.watch(conn)
        return conn

    def watch(self, conn):
        if not conn.open:
            return
        now = time.monotonic()
        for pipe in conn.pipes.values():
            if pipe.blocked(now):
                self.blocked.add(pipe)
        for sock, reads, writes in ((conn.front, "up", "down"), (conn.back, "down", "up")):
            if sock is None:
                continue
            pipe = conn.pipes[writes]
            mask = selectors.EVENT_READ if conn.pipes[reads].wants_to_read() else 0
            if pipe.waiting and not pipe.blocked(now):
                mask |= selectors.EVENT_WRITE
            if mask == self.masks.get(sock, 0):
                continue
            if sock in self.masks and mask:
                self.selector.modify(sock, mask, conn)
            elif mask:
                self.selector.register(sock, mask, conn)
            else:
                self.selector.unregister(sock)
            self.masks.pop(sock, None)
            if mask:
                self.masks[sock] = mask

    def read(self, pipe):
        conn = pipe.conn
        link = conn.link
        try:
            data = pipe.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            return self.close(conn, True)
        if not data:
            pipe.ended = True
            if not pipe.waiting:
                self.close(conn, False)
            else:
                self.watch(conn)
            return
        if conn.front is None and pipe.name == "down":
            return  # bytes to a duplicate are dropped
        if pipe.name == "up":
            self.keep(conn, data)
        pipe.holed = pipe.holed or link.lossy[pipe.name]
        if pipe.holed:
            return
        if pipe.name in link.truncate:
            left = link.truncate[pipe.name] = link.truncate[pipe.name] - len(data)
            if left <= 0:
                del link.truncate[pipe.name]
                pipe.waiting.append((0.0, data[:left] if left < 0 else data))
                self.flush(pipe)
                return self.close(conn, False)
        pipe.waiting.append((time.monotonic() + link.delay if link.delay else 0.0, data))
        pipe.bytes += len(data)
        self.flush(pipe)

    def keep(self, conn, data):
        if conn.kept is not None:
            conn.kept += data
            if len(conn.kept) > MOST_KEPT:
                conn.kept = None
        for copy in conn.copies:
            if copy.open:
                copy.pipes["up"].waiting.append((0.0, data))
                self.flush(copy.pipes["up"])

    def flush(self, pipe):
        conn = pipe.conn
        if not conn.open:
            return
        now = time.monotonic()
        try:
            while pipe.waiting and not pipe.blocked(now):
                due, data = pipe.waiting[0]
                piece = data[:4096] if conn.link.rate else data
                sent = pipe.sink.send(piece)
                pipe.bytes -= min(sent, pipe.bytes)
                if sent < len(data):
                    pipe.waiting[0] = (due, data[sent:])
                else:
                    pipe.waiting.popleft()
                if conn.link.rate:
                    pipe.budget_at = now + sent / conn.link.rate
                if sent < len(piece):
                    break
        except BlockingIOError:
            pass
        except OSError:
            return self.close(conn, True)
        if pipe.ended and not pipe.waiting:
            return self.close(conn, False)
        self.watch(conn)

    def close(self, conn, hard):
        if not conn.open:
            return
        conn.open = False
        conn.link.connections.remove(conn)
        self.lingering.discard(conn)
        for pipe in conn.pipes.values():
            self.blocked.discard(pipe)
        for sock in conn.sockets():
            if self.masks.pop(sock, 0):
                self.selector.unregister(sock)
            if hard:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        for copy in conn.copies:
            copy.close_at = time.monotonic() + copy.linger
            if copy.open:
                self.lingering.add(copy)
