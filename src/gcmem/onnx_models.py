"""Opens ONNX models and tokenizers, lazily: importing gcmem must not import their runtimes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY"
"""onnxruntime reads this variable when it is imported; later calls don't stop its telemetry."""
CPU_INFO = Path("/proc/cpuinfo")


def open_model(path: Path, *, threads: int) -> Any:
    """Returns an onnxruntime session on the CPU; 0 threads means all cores.

    Turns onnxruntime's telemetry off, unless the user has set the variable.
    """
    os.environ.setdefault(TELEMETRY_OFF, "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Idle workers must not spin: they would take the cores from the index's arithmetic.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _has_vnni():
        # Such x86 processors sum 8-bit products in 16 bits, where large ones are cut off and the
        # scores are noise. This makes them multiply exactly; on others it would take twice as long.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _has_vnni() -> bool:
    """Says whether the processor is known to multiply 8-bit numbers exactly and fast."""
    try:
        words = CPU_INFO.read_text("utf-8").split()
    except OSError:  # not Linux: nobody says what the processor can do
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(words)


def open_tokenizer(path: Path) -> Any:
    """Returns the tokenizer of a `tokenizer.json`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))
