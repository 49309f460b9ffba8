import numpy as np, gradwire as gw
best = gw.sweep("experiments/configs/ef21_a9a.toml", {"algorithm.step_size": ["theory", "theory*4", "theory*16"], "seed": [1, 2, 3]})
print(best.best()); best.to_pandas().groupby("algorithm.step_size").loss.min()
