"""Use fewer bits if the processor supports them; on other processors they make training slower."""

import torch


def mixed() -> torch.autocast:
    """Return a context in which torch computes with bfloat16, if this is faster on this machine."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=torch.ops.mkldnn._is_mkldnn_bf16_supported())
