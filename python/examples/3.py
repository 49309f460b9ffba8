import numpy as np, gradwire as gw
class MyEF21(gw.Algorithm):
    def start(self, s): return None, np.zeros_like(s.x)
    def client(self, c, x, g):
        v = c.gradient()
        if c.first: return v, v
        p = c.compress(v - g)
        return p, g + p.dense()
    def server(self, s, x, g):
        g = s.sum(onto=g)                           # the mean of all clients' estimates
        return x - s.step_size * g, g
mine, theirs = (gw.run("experiments/configs/quadratics.toml", algorithm=a, set={"algorithm.step_size": 0.01}) for a in (MyEF21(), None))
assert (mine.model == theirs.model).all() and (mine.metrics.bits_up == theirs.metrics.bits_up).all()
