import numpy as np, gradwire as gw
ef21 = gw.run("experiments/configs/quadratics.toml", set={"run.rounds": 400})
gd = gw.run(ef21.experiment | {"algorithm.name": "gd", "algorithm.compressor": "identity", "algorithm.step_size": "theory"})
print(ef21.to_pandas().tail(1))
gw.plot(ef21, gd, x="bits")                        # a notebook shows it
