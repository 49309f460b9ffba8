"""A client of gradwire.h in Python, without a package: client NUMBER, 0 to 2, of examples/server.cpp.

    python3 c_client.py 127.0.0.1:7000 0 [libgradwire_client.so.1]
"""
import ctypes as c
import sys

lib = c.CDLL(sys.argv[3] if len(sys.argv) > 3 else "libgradwire_client.so.1")
doubles, numbers = c.POINTER(c.c_double), c.POINTER(c.c_uint32)
Gradient = c.CFUNCTYPE(c.c_int32, c.c_void_p, doubles, c.c_size_t, numbers, c.c_size_t, doubles, doubles)


class Options(c.Structure):
    """gradwire_options, up to the members that this program sets."""
    _fields_ = [("struct_size", c.c_uint32), ("flags", c.c_uint32), ("server", c.c_char_p), ("id", c.c_char_p),
                ("state_dir", c.c_char_p), ("identity_dir", c.c_char_p), ("token", c.c_char_p), ("ca_file", c.c_char_p),
                ("part", c.c_uint32), ("parts", c.c_uint32)]


class Oracle(c.Structure):
    """gradwire_oracle, up to the members that this program sets."""
    _fields_ = [("struct_size", c.c_uint32), ("flags", c.c_uint32), ("user", c.c_void_p), ("sample_count", c.c_uint64),
                ("test_count", c.c_uint64), ("begin", c.c_void_p), ("gradient_f32", c.c_void_p), ("gradient_f64", Gradient)]


lib.gradwire_create.argtypes = [c.POINTER(Options), c.POINTER(Oracle), c.POINTER(c.c_void_p), c.c_char_p, c.c_size_t]
lib.gradwire_run.argtypes = lib.gradwire_message.argtypes = lib.gradwire_destroy.argtypes = [c.c_void_p]
lib.gradwire_message.restype = c.c_char_p
number, samples = int(sys.argv[2]), 10


@Gradient
def gradient(_user, x, d, batch, n, g, loss):
    """Writes the gradient of the mean of (slope a + offset - b)^2 / 2 over the batch."""
    if d != 2:
        return 1
    loss[0] = g[0] = g[1] = 0
    for j in range(samples) if n == 0 else batch[:n]:
        a = number + 0.1 * j
        residual = x[0] * a + x[1] - (2 * a - 1 + (0.1 if j % 2 == 0 else -0.1))
        share = 1 / (n or samples)
        loss[0] += share * residual * residual / 2
        g[0] += share * residual * a
        g[1] += share * residual
    return 0


options = Options(struct_size=c.sizeof(Options), server=sys.argv[1].encode(), part=number, parts=3)
oracle = Oracle(struct_size=c.sizeof(Oracle), sample_count=samples, gradient_f64=gradient)
client, why = c.c_void_p(), c.create_string_buffer(200)
if lib.gradwire_create(options, oracle, client, why, len(why)) != 0:
    sys.exit(why.value.decode())
status = lib.gradwire_run(client)
print(f"client {number}:", "the run is over" if status == 1 else lib.gradwire_message(client).decode())
lib.gradwire_destroy(client)
sys.exit(status != 1)
