"""Runs the benchmark with a real language model on this machine, behind a local endpoint.

    pip install 'gcmem[llm,bench]' xllamacpp
    python examples/local_llm_benchmark.py MODEL.gguf OUT [--limit 4]

Any GGUF model will do; the endpoint is llama.cpp's, OpenAI-compatible, on loopback only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    """Starts the endpoint, runs the quick preset with it as reader, and makes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", default="4")
    args = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(args.model)
    params.n_ctx = 8192
    params.n_parallel = 1
    params.port = 0
    server = xllamacpp.Server(params)
    bench = [sys.executable, "-m", "gcmem", "bench"]
    reader = ["--reader", f"llm:{args.model.stem}", "--base-url", f"{server.listening_address}/v1"]
    run = [*bench, "run", "--preset", "quick", "--limit", args.limit, "--out", str(args.out)]
    subprocess.run([*run, *reader], check=True)
    subprocess.run([*bench, "report", str(args.out)], check=True)


if __name__ == "__main__":
    main()
