import numpy as np, gradwire as gw
A, b = np.random.default_rng(0).normal(size=(4, 50, 10)), np.ones((4, 50))
def client(A, b):
    def f(x, out):                                 # the gradient goes into out
        r = A @ x - b
        np.matmul(A.T, r / len(b), out=out)
        return r @ r / (2 * len(b))
    return gw.oracle(f, dim=10)
result = gw.run({"algorithm": {"name": "ef21", "compressor": "topk:k=2", "step_size": 0.2}, "run": {"rounds": 2000}},
                oracles=[client(*c) for c in zip(A, b)], on_record=lambda r: r.grad_norm_sq < 1e-20)
print(result.outcome, result.rounds, result.model)
