"""Export the encoder in the shipped form: quantised ONNX, and token vectors distilled from the encoder."""

import argparse
import shutil
from pathlib import Path

import numpy as np
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn
from transformers import AutoModel, AutoTokenizer

from benchmarks.train.exact_products import exact_products

STATIC_SIZE = 192
BATCH = 512


class Pooled(nn.Module):  # type: ignore[misc]
    """The transformer with pooling: one vector of length one per text."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return one row per text."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def blended(tuned: Path, base: str, share: float) -> nn.Module:
    """Interpolate the weights before and after training, so that the encoder forgets less, and return it."""
    new = AutoModel.from_pretrained(tuned, attn_implementation="eager")
    if share < 1:
        old = AutoModel.from_pretrained(base).state_dict()
        new.load_state_dict({
            name: old[name].lerp(value, share) if value.is_floating_point() else value
            for name, value in new.state_dict().items()
        })  # fmt: skip
    return new.eval()


def export(body: nn.Module, out: Path) -> None:
    """Write `encoder.onnx` with seven-bit weights."""
    whole = out / "encoder.float.onnx"
    shape = {0: "texts", 1: "tokens"}
    ids = torch.ones((2, 16), dtype=torch.int64)
    torch.onnx.export(
        Pooled(body), (ids, ids), str(whole), dynamo=False, opset_version=17,
        input_names=["input_ids", "attention_mask"], output_names=["vector"],
        dynamic_axes={"input_ids": shape, "attention_mask": shape, "vector": {0: "texts"}},
    )  # fmt: skip
    quantize_dynamic(whole, out / "encoder.onnx", weight_type=QuantType.QInt8, per_channel=True)
    exact_products(out / "encoder.onnx")
    whole.unlink()


@torch.inference_mode()  # type: ignore[untyped-decorator]
def distilled(body: nn.Module, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return an eight-bit vector for each token, and its factor.

    A token's vector is the encoder's vector of the token alone, projected on the first principal components. Common
    tokens get shorter vectors, assuming that the vocabulary is sorted by frequency.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    many = len(tokenizer)
    encoder = Pooled(body)
    rows = []
    for start in range(0, many, BATCH):
        ids = torch.tensor(
            [
                [tokenizer.cls_token_id, token, tokenizer.sep_token_id]
                for token in range(start, min(many, start + BATCH))
            ]
        )
        rows.append(encoder(ids, torch.ones_like(ids)).numpy())
    vectors = np.concatenate(rows)
    vectors -= vectors.mean(0)
    _, _, axes = np.linalg.svd(vectors[:: max(1, many // 8000)], full_matrices=False)
    vectors = vectors @ axes[:STATIC_SIZE].T
    ranks = np.arange(many) + 2
    common = 1 / (ranks * np.log(many))  # Zipf's law
    vectors *= (1e-4 / (1e-4 + common))[:, None]
    vectors[tokenizer.all_special_ids] = 0
    scale = np.abs(vectors).max(1) / 127 + 1e-12
    return np.round(vectors / scale[:, None]).astype(np.int8), scale.astype(np.float16)


def main() -> None:
    """Export from the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.train.export", description=__doc__)
    parser.add_argument("tuned", type=Path, help="folder of the encoder after training")
    parser.add_argument("--base", required=True, help="folder of the encoder before training")
    parser.add_argument("--share", type=float, default=1.0, help="share of the trained weights in the blend")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    body = blended(args.tuned, args.base, args.share)
    export(body, args.out)
    words, scale = distilled(body, args.tuned)
    np.savez_compressed(args.out / "static.npz", words=words, scale=scale)
    shutil.copy(args.tuned / "tokenizer.json", args.out)
    for path in sorted(args.out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
