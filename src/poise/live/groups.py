"""Fold a model's parameters into a few groups that mean something: what it is, and how deep."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

ROLES: tuple[tuple[str, str], ...] = (
    ("embedding", r"emb|wte|wpe|tok_emb|word_emb|position|token_type"),
    ("head", r"lm_head|^head|\.head|output_layer|classifier|score|unembed"),
    ("norm", r"norm|ln_?\d*|layer_norm|rmsnorm|\bbn\d*"),
    ("attention_in", r"qkv|c_attn|in_proj|query_key_value|\bw?qk?v?_proj|[._](q|k|v)(_proj|_lin)?$|query|key|value|\bwq\b|\bwk\b|\bwv\b"),
    ("attention_out", r"attn.*(c_proj|out_proj|o_proj|dense|proj$|wo\b)|attention.*(output|out|wo|dense)|self_attn\.o"),
    ("mlp_in", r"(mlp|ffn|feed_forward|intermediate).*(c_fc|fc1|w1|w3|gate|up|in|dense_h_to_4h|\b0\b)|intermediate|c_fc|fc1|gate_proj|up_proj|lin1|linear1"),
    ("mlp_out", r"(mlp|ffn|feed_forward|output).*(c_proj|fc2|w2|down|out|dense_4h_to_h|\b2\b)|fc2|down_proj|lin2|linear2"),
)  # fmt: skip
_DEPTH = re.compile(r"(?:^|\.)(\d+)(?=\.)")
_WRAPPERS = re.compile(r"_orig_mod\.|(?:^|(?<=\.))module\.|_fsdp_wrapped_module\.|_checkpoint_wrapped_module\.")


@dataclass(frozen=True, slots=True)
class Member:
    """A group: its id (`layers.3.mlp_in`), role, depth (None outside blocks) and the parameters folded into it."""

    id: str
    role: str
    depth: int | None
    parameters: tuple[str, ...]


def clean(name: str) -> str:
    """A parameter's name without what wrappers (compile, DDP, FSDP, checkpointing) put into it."""
    return _WRAPPERS.sub("", name)


def role_of(name: str) -> str:
    """What a parameter is for, told by its path; `other` where nothing fits."""
    path = name.rpartition(".")[0].lower() or name.lower()
    return next((role for role, pattern in ROLES if re.search(pattern, path)), "other")


def fold(names: Iterable[str]) -> tuple[list[Member], list[int]]:
    """Group parameters by depth and role.

    Returns:
        The members, in model order, and for each name the index of its member.
    """
    keys: dict[tuple[int | None, str], list[str]] = {}
    which = []
    for name in map(clean, names):
        depth = _DEPTH.search(name)
        key = (int(depth.group(1)) if depth else None, role_of(name))
        keys.setdefault(key, []).append(name)
        which.append(key)
    order = {key: i for i, key in enumerate(keys)}
    members = [
        Member(role if depth is None else f"layers.{depth}.{role}", role, depth, tuple(names))
        for (depth, role), names in keys.items()
    ]
    return members, [order[key] for key in which]
