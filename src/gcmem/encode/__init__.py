"""Sentence encoders: the shipped one, and adapters to others that need extras."""

from gcmem.encode.cached import CachedEncoder
from gcmem.encode.gguf import GGUFEncoder
from gcmem.encode.minilm import MiniLMEncoder
from gcmem.encode.multilingual import MultilingualEncoder
from gcmem.encode.onnx import OnnxEncoder
from gcmem.encode.openai import OpenAIEncoder
from gcmem.encode.sentence_transformers import SentenceTransformersEncoder

__all__ = [
    "CachedEncoder",
    "GGUFEncoder",
    "MiniLMEncoder",
    "MultilingualEncoder",
    "OnnxEncoder",
    "OpenAIEncoder",
    "SentenceTransformersEncoder",
]
