"""Use fewer bits on processors that support them. On other processors, fewer bits slow down training."""

import torch


def mixed() -> torch.autocast:
    """Return a context in which torch computes with bfloat16, if this is faster on this machine."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=torch.ops.mkldnn._is_mkldnn_bf16_supported())
