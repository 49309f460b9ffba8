import numpy as np, gradwire as gw
import torch, gradwire.torch
def oracle(): return gw.torch.oracle(torch.nn.Linear(64, 10), torch.nn.CrossEntropyLoss(), torch.rand(99, 64), torch.arange(99) % 10)
ask = {"precision": "fp32", "problem": {"kind": "custom", "dim": 650}, "clients": {"count": 2}, "run": {"rounds": 100},
       "algorithm": {"name": "ef21", "compressor": "topk:k=5%", "step_size": 0.5}}
with gw.Server(ask, state="torch-run") as server:
    clients = [gw.Client(server.address, oracle=oracle()).start() for _ in range(2)]
    print(server.wait().metrics.loss[-1])
