import numpy as np, gradwire as gw
p = gw.Compressor("topk:k=1%", dim=1000)(v := np.random.default_rng(1).normal(size=1000))
print(p.bits, p.indices, np.linalg.norm(v - p.dense()))
tape = gw.Tape(); a, b = tape.variable(-4.0), tape.variable(2.0)
g = (b**3 - a).relu() + 10 / (a + b)**2; g.backward(); print(g.value, a.grad, b.grad)
