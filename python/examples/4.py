import numpy as np, gradwire as gw
sweep = gw.sweep("experiments/configs/quadratics.toml", {"algorithm.step_size": ["theory*16", "theory*64", "theory*256"], "seed": [1, 2, 3]},
                 set={"run.rounds": 400})
print(sweep.best()); first = sweep[sweep.best()["runs"][0][0]]
print(first, sweep.to_pandas().groupby("algorithm.step_size").loss.last())
