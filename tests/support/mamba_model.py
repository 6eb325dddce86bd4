"""A GGUF model without attention, whose prompt cache cannot be cut: random weights, a vocabulary of bytes."""

from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, STATE, RANK, KERNEL = 64, 128, 8, 4, 4


def write_tiny_mamba(path: Path) -> Path:
    """Write the model; it has no chat template."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(False)
    for name, weights in _weights(len(tokens)).items():
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(tokens: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape)

    block = {
        "attn_norm.weight": np.ones(WIDTH),
        "ssm_in.weight": normal(2 * INNER, WIDTH),
        "ssm_conv1d.weight": normal(INNER, KERNEL),
        "ssm_conv1d.bias": normal(INNER),
        "ssm_x.weight": normal(RANK + 2 * STATE, INNER),
        "ssm_dt.weight": normal(INNER, RANK),
        "ssm_dt.bias": normal(INNER),
        "ssm_a": -np.abs(normal(INNER, STATE)),
        "ssm_d": normal(INNER),
        "ssm_out.weight": normal(WIDTH, INNER),
    }
    return {
        "token_embd.weight": normal(tokens, WIDTH),
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": normal(tokens, WIDTH),
        **{f"blk.0.{name}": weights for name, weights in block.items()},
    }
