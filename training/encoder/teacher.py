"""Vectors of the teacher: nomic-embed-text-v1.5, read from its GGUF file, run by torch.

    python -m training.encoder.teacher --gguf nomic-embed-text-v1.5.f16.gguf --texts FILE --out FILE

FILE has one JSON object a line: {"text": ..., "kind": "question" or "document"}. Writes an array
of unit vectors as float16, one row a line.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer
from torch.nn.functional import layer_norm, linear, normalize, scaled_dot_product_attention, silu

from gcmem.judge.local.cross_encoder import TOKENIZER

PREFIXES = {"question": "search_query: ", "document": "search_document: "}
DIMENSIONS = 768
HEADS = 12
EPSILON = 1e-12
ROPE_BASE = 1000.0
MAX_TOKENS = 256
TOKENS_PER_BATCH = 4096


class Teacher:
    """nomic-bert: rotary positions, gated feed-forward layers, norms after each block."""

    def __init__(self, gguf: Path) -> None:
        self._weights = {
            tensor.name: torch.from_numpy(np.array(tensor.data)).to(torch.bfloat16)
            for tensor in GGUFReader(gguf).tensors
        }
        self._tokenizer = Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """Returns the token ids of texts."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]

    @torch.inference_mode()
    def encode(self, rows: list[list[int]]) -> np.ndarray:
        """Returns one unit vector a row of token ids."""
        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest, dtype=torch.bool)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
            mask[number, : len(row)] = True
        hidden = self._weights["token_embd.weight"][ids] + self._weights["token_types.weight"][0]
        hidden = self._norm(hidden, "token_embd_norm")
        cosines, sines = _angles(longest, hidden.shape[-1] // HEADS)
        for number in range(12):
            hidden = self._block(hidden, mask, cosines, sines, f"blk.{number}")
        weights = mask[:, :, None].float()
        pooled = (hidden.float() * weights).sum(1) / weights.sum(1)
        return normalize(pooled, dim=1).numpy()

    def _block(
        self,
        hidden: torch.Tensor,
        mask: torch.Tensor,
        cosines: torch.Tensor,
        sines: torch.Tensor,
        name: str,
    ) -> torch.Tensor:
        rows, length, width = hidden.shape
        joined = linear(hidden, self._weights[f"{name}.attn_qkv.weight"])
        query, key, value = joined.view(rows, length, 3, HEADS, width // HEADS).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        attended = scaled_dot_product_attention(
            _turned(query, cosines, sines),
            _turned(key, cosines, sines),
            value,
            attn_mask=mask[:, None, None, :],
        )
        attended = attended.transpose(1, 2).reshape(rows, length, width)
        hidden = hidden + linear(attended, self._weights[f"{name}.attn_output.weight"])
        hidden = self._norm(hidden, f"{name}.attn_output_norm")
        up = linear(hidden, self._weights[f"{name}.ffn_up.weight"])
        gate = silu(linear(hidden, self._weights[f"{name}.ffn_gate.weight"]))
        hidden = hidden + linear(up * gate, self._weights[f"{name}.ffn_down.weight"])
        return self._norm(hidden, f"{name}.layer_output_norm")

    def _norm(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(hidden, hidden.shape[-1:], weight, bias, EPSILON)


def _angles(length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = ROPE_BASE ** (-torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    both = torch.cat([angles, angles], dim=1)
    return both.cos().bfloat16(), both.sin().bfloat16()


def _turned(part: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    first, second = part.chunk(2, dim=-1)
    return part * cosines + torch.cat([-second, first], dim=-1) * sines


def main() -> None:
    """Reads texts, encodes them in batches of like length, writes vectors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.texts.read_text().splitlines()]
    teacher = Teacher(args.gguf)
    rows = teacher.tokens([PREFIXES[line["kind"]] + line["text"] for line in lines])
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    vectors = np.zeros((len(rows), DIMENSIONS), dtype=np.float16)
    started, done = time.perf_counter(), 0
    while done < len(order):
        size = max(1, TOKENS_PER_BATCH // len(rows[order[min(done + 63, len(order) - 1)]]))
        batch = order[done : done + size]
        vectors[batch] = teacher.encode([rows[number] for number in batch])
        if done // 2048 != (done + size) // 2048:
            print(
                f"{done + size} of {len(order)}, {time.perf_counter() - started:.0f} s", flush=True
            )
        done += len(batch)
    np.save(args.out, vectors)


if __name__ == "__main__":
    main()
