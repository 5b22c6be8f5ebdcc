#include "calibrate/validate/torch_script.h"

namespace ringside {

std::string_view torchScript() {
    return R"python(# Trains a small model with PyTorch on Gloo and writes how long its steps took. Written by Ringside.
import ctypes
import json
import os
import signal
import sys
import time

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with whoever started it
job = json.load(open(sys.argv[1]))
os.environ["GLOO_SOCKET_IFNAME"] = job["interface"]
if job["core"] >= 0:
    os.sched_setaffinity(0, {job["core"]})

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
rank, world = job["rank"], job["world"]
if world > 1:
    dist.init_process_group("gloo", init_method="file://" + job["store"], rank=rank, world_size=world)


def timed_calls(wanted):
    """Begin and end of every call of every collective, after some compute, so that ranks come a moment apart, as in a step."""
    busy, calls = torch.randn(384, 384), []
    for name, size, times in wanted:
        part = torch.empty(size // 4 // world).zero_()
        whole = torch.empty(part.numel() * world).zero_()
        call = {
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "broadcast": lambda: dist.broadcast(whole, 0),
        }[name]
        spans = []
        dist.barrier()
        for _ in range(times + 1):
            for _ in range(4):
                busy @ busy
            begin = time.perf_counter()
            call()
            spans.append((begin, time.perf_counter()))
        calls.append(spans[1:])
    return calls


def finish(answer):
    answer["torch"] = torch.__version__
    json.dump(answer, open(sys.argv[2], "w"))
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
    sys.exit()


if "collectives" in job:
    finish({"calls": timed_calls(job["collectives"])})
model_config = job["model"]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.wte, self.wpe = nn.Embedding(config["vocab_size"], width), nn.Embedding(config["n_positions"], width)
        self.blocks = nn.ModuleList(Block(width, config["n_head"]) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, config["vocab_size"], bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x)).flatten(0, 1)


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        widths = config["widths"]
        self.blocks = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.activation = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}[config.get("activation", "relu")]

    def forward(self, x):
        for layer in self.blocks[:-1]:
            x = self.activation(layer(x))
        return self.blocks[-1](x)


if model_config["model_type"] == "gpt2":
    model = Gpt(model_config)
    inputs = torch.randint(model_config["vocab_size"], (job["batch"], model_config["n_positions"]))
    targets = torch.randint(model_config["vocab_size"], (inputs.numel(),))
else:
    model = Mlp(model_config)
    inputs = torch.randn(job["batch"], model_config["widths"][0])
    targets = torch.randint(model_config["widths"][-1], (job["batch"],))

strategy = job["strategy"]
if strategy == "fsdp2":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
elif strategy in ("ddp", "zero-redundancy-optimizer"):
    # Left out is not 25: then the first bucket has 1 MiB.
    model = nn.parallel.DistributedDataParallel(model, **({"bucket_cap_mb": job["bucket_mb"]} if job["bucket_mb"] else {}))

adamw = job["optimizer"] == "adamw"
settings = {"lr": 1e-3, "foreach": True}
kind = torch.optim.AdamW if adamw else torch.optim.SGD
if strategy == "zero-redundancy-optimizer":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=kind, **settings)
else:
    optimizer = kind(model.parameters(), **settings)


def step():
    if world > 1:
        dist.barrier()
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    return time.perf_counter() - begin


for _ in range(job["warm_up"]):
    step()
seconds = [step() for _ in range(job["steps"])]
if world > 1 and rank == 0:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    profiler.export_chrome_trace(job["trace"])
elif world > 1:
    step()
finish({"seconds": seconds})
)python";
}

}  // namespace ringside
