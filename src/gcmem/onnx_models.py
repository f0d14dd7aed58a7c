"""Opens ONNX models and tokenizers, lazily: importing gcmem must not import their runtimes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY"
"""onnxruntime reads this variable only when it is imported."""
CPU_INFO = Path("/proc/cpuinfo")


def open_model(path: Path, *, threads: int) -> Any:
    """Returns an onnxruntime session on the CPU; 0 threads means all cores.

    Turns onnxruntime's telemetry off, unless the user has set the variable.
    """
    os.environ.setdefault(TELEMETRY_OFF, "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Spinning workers would take the cores that the vector index needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _has_vnni():
        # Without VNNI, x86 processors sum 8-bit products in 16 bits, which can overflow and make
        # scores wrong. This option makes them exact; with VNNI it would only double the time.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _has_vnni() -> bool:
    """Returns whether the processor is known to multiply 8-bit numbers exactly and fast."""
    try:
        words = CPU_INFO.read_text("utf-8").split()
    except OSError:  # not Linux: unknown
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(words)


def open_tokenizer(path: Path) -> Any:
    """Returns the tokenizer in a `tokenizer.json`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))
