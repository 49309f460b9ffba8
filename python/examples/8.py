import numpy as np, gradwire as gw
X = np.random.default_rng(0).normal(size=(200, 5))
y = np.sign(X @ np.arange(5) + 0.1)
result = gw.run({"problem": {"kind": "logistic", "regularizer": "l2", "lambda": 0.01}, "clients": {"count": 4},
                 "algorithm": {"name": "gd"}, "run": {"rounds": 50}}, data=(X, y), test=(X[:50], y[:50]))
print(result, result.metrics.accuracy[-1])
