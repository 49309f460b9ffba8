import numpy as np, gradwire as gw
problem = gw.Problem("experiments/configs/quadratics.toml")
loss, gradient = problem[0].loss_and_gradient(problem.start)
print(problem, problem.constants.L, problem.f_star, problem.loss(problem.start))
result = gw.run({"algorithm": {"name": "gd", "step_size": 1 / problem.constants.L}}, oracles=problem)
