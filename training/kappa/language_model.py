"""A small language model as a teacher: read from a GGUF file, with a head for every task."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from torch import nn
from training.kappa.rows import Row
from training.kappa.tasks import MAX_OPTIONS, AnswerRow, PairRow, StanceRow
from transformers import Qwen2Config, Qwen2Model
from transformers.initialization import no_init_weights

PAIR, ANSWER, OPTIONS = 0, 1, 2
"""Where the heads' logits stand: one, one, then an option each and last none."""
MAX_TOKENS = 224
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizer cuts a text before it merges bytes."""
NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
"""A layer's parts: in the file, and in transformers."""


class LanguageModel(nn.Module):
    """Reads a row as text and answers from its last token.

    The last layers of a language model serve the next word; `layers` leaves them out.
    """

    def __init__(self, path: Path, *, layers: int) -> None:
        super().__init__()
        file = gguf.GGUFReader(path)
        self.tokenizer = tokenizer_of(file)
        with no_init_weights():
            self.backbone = Qwen2Model(config_of(file, layers=layers)).float()
        load_weights(self.backbone, file)
        # What words mean it knows; too few of them come up in training to learn it anew.
        self.backbone.embed_tokens.requires_grad_(False)
        self.head = nn.Linear(self.backbone.config.hidden_size, OPTIONS + MAX_OPTIONS + 1)

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        """Returns a row of logits for each text."""
        device = self.head.weight.device
        found = self.tokenizer.encode_batch(list(texts))
        rows = [encoding.ids[-MAX_TOKENS:] for encoding in found]
        ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        last = torch.tensor([len(row) - 1 for row in rows], device=device)
        # Padding stands behind the last token, which does not look ahead: no mask is needed.
        hidden = self.backbone(input_ids=ids.to(device), use_cache=False)[0]
        return self.head(hidden[torch.arange(len(rows), device=device), last]).float()


def prompt(row: Row, *, swapped: bool = False) -> str:
    """Returns a row as the language model reads it; a pair may stand in either order."""
    if isinstance(row, PairRow):
        question, one, other = row.texts
        one, other = (other, one) if swapped else (one, other)
        return f"Question: {question or 'none'}\n1: {one}\n2: {other}\nDo 1 and 2 contradict?"
    if isinstance(row, AnswerRow):
        return f"Question: {row.question}\nMessage: {row.sentence}\nIs this an answer?"
    options = "\n".join(f"{'ABCDE'[n]}) {option}" for n, option in enumerate(row.options))
    return f"Question: {row.question}\n{options}\nMessage: {row.sentence}\nThe answer is"


def head_of(row: Row) -> slice:
    """Returns where the logits of a row's task stand."""
    if isinstance(row, StanceRow):
        return slice(OPTIONS, None)
    place = PAIR if isinstance(row, PairRow) else ANSWER
    return slice(place, place + 1)


@torch.no_grad()
def judge(
    model: LanguageModel, rows: Sequence[Row], *, twice: bool = True, size: int = 512
) -> np.ndarray:
    """Returns the logits of every row, padded with -inf; `twice` reads a pair in both orders."""
    out = np.full((len(rows), MAX_OPTIONS + 1), -np.inf, dtype=np.float32)
    asked = [(n, prompt(row)) for n, row in enumerate(rows)]
    if twice:
        pairs = [(n, row) for n, row in enumerate(rows) if isinstance(row, PairRow)]
        asked += [(n, prompt(row, swapped=True)) for n, row in pairs]
    asked.sort(key=lambda item: len(item[1]))
    for start in range(0, len(asked), size):
        part = asked[start : start + size]
        with torch.autocast(model.head.weight.device.type, dtype=torch.bfloat16):
            found = model([text for _, text in part]).float().cpu().numpy()
        for (n, _), logits in zip(part, found, strict=True):
            own = logits[head_of(rows[n])]
            if isinstance(rows[n], StanceRow):
                own[len(rows[n].options) : MAX_OPTIONS] = -np.inf
            before = out[n, : len(own)]
            out[n, : len(own)] = np.where(before == -np.inf, own, (before + own) / 2)
    return out


def shuffled(row: Row, rng: random.Random) -> str:
    """Returns a row's text, a pair in any order."""
    return prompt(row, swapped=rng.random() < 0.5)


def config_of(file: gguf.GGUFReader, *, layers: int) -> Qwen2Config:
    """Returns the model's shape."""

    def value(name: str) -> float:
        return file.fields[f"qwen2.{name}"].contents()

    return Qwen2Config(
        vocab_size=len(file.fields["tokenizer.ggml.tokens"].data),
        hidden_size=value("embedding_length"),
        intermediate_size=value("feed_forward_length"),
        num_hidden_layers=min(layers, value("block_count")),
        num_attention_heads=value("attention.head_count"),
        num_key_value_heads=value("attention.head_count_kv"),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base")},
        attn_implementation="sdpa",
    )


def tokenizer_of(file: gguf.GGUFReader) -> Tokenizer:
    """Returns the tokenizer that the file describes."""
    words = file.fields["tokenizer.ggml.tokens"].contents()
    merges = file.fields["tokenizer.ggml.merges"].contents()
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def load_weights(backbone: Qwen2Model, file: gguf.GGUFReader) -> None:
    """Fills the model with the file's weights, in full precision."""
    wanted = dict(backbone.named_parameters())
    places = {"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight"}
    for number in range(backbone.config.num_hidden_layers):
        for own, theirs in NAMES.items():
            for kind in ("weight", "bias"):
                places[f"blk.{number}.{own}.{kind}"] = f"layers.{number}.{theirs}.{kind}"

    def load(tensor: gguf.ReaderTensor) -> str:
        target = wanted[places[tensor.name]]
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        target.data.copy_(torch.from_numpy(values.reshape(target.shape).copy()))
        return places[tensor.name]

    chosen = [tensor for tensor in file.tensors if tensor.name in places]
    with ThreadPoolExecutor() as pool:
        filled = set(pool.map(load, chosen))
    if missing := wanted.keys() - filled:
        raise ValueError(f"the file has no weights for {sorted(missing)[:3]}")
