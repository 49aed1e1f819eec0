"""What a foreign name means: a table of rules over words, tried from the special to the general.

Names alone decide here; `assign.py` settles contests between names of the same meaning, with the help of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from poise.readers.words import (
    BOUNDS,
    ENTROPIES,
    EVAL,
    LOSS,
    PLAIN,
    SMOOTH,
    TEST,
    TRAIN,
    Name,
    split_name,
    wordset,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name most likely means.

    Args:
        signal: a name of `signals.SIGNALS`.
        member: part, data set, layer; empty for the whole.
        rank: lower is the better name for this signal.
        spare: member to become where a better name takes the signal; where empty it becomes `other`.
        smooth: an average over time, judged only where there is no raw series.
        fallback: judged only where nothing else fills the signal.
        scope: `step` or `epoch` where the name tells.
        convert: `sqrt`, `negate`, `log`, `start` (count from the first value) or empty.
        factor: to the signal's unit.
    """

    signal: str
    member: str = ""
    rank: int = 0
    spare: str = ""
    smooth: bool = False
    fallback: bool = False
    scope: str = ""
    convert: str = ""
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Context:
    """What kind of log the names come from.

    Args:
        rl: rewards, advantages or policies are logged, so the loss has no level.
        preference: chosen and rejected answers are compared: the loss is a real one (ln 2 at the start).
        gan: a generator and a discriminator play against each other.
    """

    rl: bool = False
    preference: bool = False
    gan: bool = False


OTHER = Meaning("other")
_REWARD = ("reward", "rewards", "rew", "return", "returns", "episodic")
_RL = (
    *_REWARD,
    "advantage",
    "advantages",
    "policy",
    "actor",
    "critic",
    "ppo",
    "grpo",
    "rollout",
    "episode",
    "qf",
)
_G = ("generator", "gen", "g")
_D = ("discriminator", "disc", "d", "critic")
Rule = Callable[[Name, Context], Meaning | None]


def context_of(names: Iterable[str]) -> Context:
    """Tell the kind of a log by its names; pass only columns that hold something other than zero."""
    split = [split_name(name) for name in names]
    losses = [n for n in split if n.any(*LOSS, "err", "error")]
    preference = any(n.any("chosen") for n in split) and any(
        n.any("rejected") for n in split
    )
    rl = any(n.any(*_RL) for n in split)
    gan = any(n.any(*_G) for n in losses) and any(n.any(*_D) for n in losses)
    gan = gan or any(n.any("generator", "discriminator", "gan") for n in losses)
    return Context(
        rl and not preference,
        preference,
        gan and not (rl and not any(n.any(*_G) for n in losses)),
    )


def recognise(text: str, context: Context = Context()) -> Meaning | None:
    """Return what a name means, `OTHER` for what is known and never judged, None for what is not known."""
    name = split_name(text)
    if not name.words:
        return None
    return next(
        (meaning for rule in RULES if (meaning := rule(name, context)) is not None),
        None,
    )


def _position(name: Name, _: Context) -> Meaning | None:
    words = name.set - TRAIN - EVAL - {"trainer", "current", "cur", "progress", "state"}
    if words in ({"epoch"}, {"epochs"}):
        return Meaning("epoch")
    if words in ({"timestamp"}, {"wall", "time"}, {"walltime"}, {"created", "at"}):
        return Meaning("time", rank=1, convert="start")
    if words in (
        {"runtime"},
        {"elapsed"},
        {"elapsed", "time"},
        {"total", "time"},
        {"time", "elapsed"},
        {"time", "total", "s"},
    ):
        return Meaning("time", factor=_seconds(name))
    return None


def _constant(name: Name, _: Context) -> Meaning | None:
    """Coefficients, schedules, shares, plans and clock times that look like signals by one of their words."""
    if name.any(
        "coef",
        "coeff",
        "coefficient",
        "weighting",
        "beta",
        "lambda",
        "temperature",
        "temp",
        "eta",
        "remaining",
        "percentage",
        "percent",
        "momentum",
        "flos",
        "flops",
        "tflops",
        "mfu",
        "hfu",
    ):
        return OTHER
    if name.any("explained") or (
        name.any("frac", "fraction", "ratio") and not name.has("update")
    ):
        return _clip_share(name) or OTHER
    if (
        name.has("clip", "range")
        or (name.has("clip", "norm") and name.any("max", "threshold"))
        or name.words in (("clip", "grad", "norm"), ("max", "grad", "norm"))
    ):
        return OTHER
    return None


def _clip_share(name: Name) -> Meaning | None:
    clips = name.any("clip", "clipped") and name.any("grad", "gradient", "gradients")
    return Meaning("clip_share") if clips else None


def _norm(name: Name, _: Context) -> Meaning | None:
    gradient, norm = (
        name.any("grad", "grads", "gradient", "gradients"),
        name.any("norm", "norms", "l2"),
    )
    if not norm or name.any("layernorm", "rmsnorm", "batchnorm") and not gradient:
        return None
    if name.words == ("norm",):
        return Meaning("grad_norm", rank=5, fallback=True)
    convert = "sqrt" if name.any("square", "squared", "sq", "sqr") else ""
    shapes = frozenset(
        {
            "grad",
            "grads",
            "gradient",
            "gradients",
            "norm",
            "norms",
            "l2",
            "total",
            "global",
            "square",
            "squared",
            "sq",
            "pre",
            "post",
            "before",
            "after",
            "clip",
            "clipping",
            "clipped",
            "unclipped",
            "model",
            "2",
            "2.0",
            "optim",
            "optimizer",
        }
    )
    member = name.rest(
        shapes, TRAIN, PLAIN, SMOOTH, LOSS if not gradient else frozenset()
    )
    if gradient or name.words[:2] in (("total", "norm"), ("global", "norm")):
        clipped = name.any("clipped", "post", "after") and not name.any(
            "before", "pre", "unclipped"
        )
        if name.any("min", "max", "std", "var"):
            return OTHER
        return Meaning(
            "grad_norm_clipped" if clipped else "grad_norm",
            member,
            convert=convert,
            smooth=name.smooth,
            rank=bool(convert),
        )
    if name.any("update", "updates", "delta"):
        return Meaning(
            "update_norm",
            name.rest(shapes, TRAIN, PLAIN, frozenset({"update", "updates", "delta"})),
            convert=convert,
        )
    weights = frozenset(
        {"param", "params", "parameter", "parameters", "weight", "weights"}
    )
    if not name.set.isdisjoint(weights):
        return Meaning(
            "param_norm", name.rest(shapes, TRAIN, PLAIN, weights), convert=convert
        )
    return OTHER


def _numerics(name: Name, _: Context) -> Meaning | None:
    if (
        name.any("scale", "scaler")
        and name.any("loss", "grad", "amp", "scaler", "scale")
        and not name.any("lr", "rate", "logit", "weight")
    ):
        sole = name.set - TRAIN <= {"scale"}
        return Meaning("loss_scale", fallback=sole, rank=int(sole))
    if name.any("skipped", "skip") and name.any(
        "step", "steps", "iterations", "iters", "batches", "iteration", "updates"
    ):
        return Meaning("skipped_steps", rank=int(name.any("nan")))
    if name.any("nan", "nans", "inf", "nonfinite") and name.any(
        "iterations", "count", "steps", "number", "num", "nonfinite"
    ):
        return Meaning("nonfinite_count")
    if name.any("overflow", "overflows"):
        return Meaning("skipped_steps", rank=2)
    return None


def _rate(name: Name, _: Context) -> Meaning | None:
    if not (name.any("lr", "lrs") or name.has("learning", "rate")):
        return None
    if name.any("loss", "decay", "mult", "multiplier", "scale", "factor", "warmup"):
        return None if name.any("loss") else OTHER
    member = name.rest(frozenset({"lr", "lrs", "learning", "rate"}), TRAIN, PLAIN)
    return Meaning("learning_rate", member, rank=0)


def _mixture(name: Name, _: Context) -> Meaning | None:
    words = wordset("aux auxiliary balance balancing load router z")
    if name.any(*LOSS) and (
        name.any("aux", "auxiliary", "balance", "balancing", "router", "moe", "routing")
        or name.has("z", "loss")
    ):
        return (
            Meaning(
                "aux_loss",
                name.rest(
                    LOSS, TRAIN, PLAIN, SMOOTH, frozenset({"aux", "auxiliary", "moe"})
                ),
                smooth=name.smooth,
                spare="aux",
            )
            if name.split != "eval"
            else OTHER
        )
    if (
        name.any("expert", "experts")
        and name.any("max")
        and name.any(*words, "share", "usage", "frac", "tokens")
    ):
        return Meaning("expert_load_max")
    return None


def _inside(name: Name, _: Context) -> Meaning | None:
    attention = name.any("attn", "attention", "attentions", "qk")
    drop = wordset(
        "attn attention attentions qk logit logits max maximum entropy activation activations act absmax"
    )
    if (
        name.any("logit", "logits")
        and name.any("max", "maximum")
        and (attention or name.set <= {"max", "logit", "logits"})
    ):
        return Meaning("attention_logit_max", name.rest(drop, TRAIN, PLAIN))
    if attention and name.any("entropy"):
        return Meaning("attention_entropy", name.rest(drop, TRAIN, PLAIN))
    if name.any("activation", "activations", "act") and name.any("max", "absmax"):
        return Meaning("activation_max", name.rest(drop, TRAIN, PLAIN))
    if name.any("update") and name.any("ratio"):
        return Meaning(
            "update_ratio",
            name.rest(
                frozenset({"update", "ratio", "weight", "to", "param"}), TRAIN, PLAIN
            ),
        )
    return None


def _preference(name: Name, context: Context) -> Meaning | None:
    if name.any("margin", "margins") and (context.preference or name.any(*_REWARD)):
        return Meaning("reward_margin") if name.split != "eval" else OTHER
    if context.preference and name.any("chosen", "rejected"):
        return OTHER
    return None


def _reinforcement(name: Name, context: Context) -> Meaning | None:
    if not context.rl:
        return None
    return _rl_loss(name) or _rl_reward(name) or _rl_distribution(name)


def _rl_loss(name: Name) -> Meaning | None:
    if not name.any(*LOSS, "surrogate"):
        return None
    if name.any("entropy") and not name.any("cross"):
        return Meaning("entropy", rank=1, convert="entropy-sign")
    if name.any("kl"):
        return Meaning("kl", rank=1)
    critics = wordset("value values critic vf v qf q td baseline")
    actors = wordset("policy actor pg pi surrogate gradient ppo")
    steady = (LOSS, TRAIN, PLAIN, SMOOTH, frozenset({"loss", "losses"}))
    if not name.set.isdisjoint(critics):
        return Meaning(
            "value_loss",
            name.rest(*steady, critics),
            spare=name.rest(*steady) or "value",
        )
    if not name.set.isdisjoint(actors):
        return Meaning(
            "policy_loss",
            name.rest(*steady, actors),
            spare=name.rest(*steady) or "policy",
        )
    return None


def _rl_reward(name: Name) -> Meaning | None:
    if name.any("chosen", "rejected", "zero"):
        return OTHER
    scores = name.any("score", "scores") and name.any(
        "objective", "critic", "mean", "env"
    )
    if not (name.any(*_REWARD) or scores):
        return None
    if name.any("accuracies", "accuracy"):
        return None
    drop = frozenset(
        (
            *_REWARD,
            "objective",
            "critic",
            "rollout",
            "ep",
            "episode",
            "env",
            "charts",
            "score",
            "scores",
            "per",
            "undiscounted",
        )
    )
    member = name.rest(
        drop,
        TRAIN,
        PLAIN,
        SMOOTH,
        frozenset({"std", "stddev"}),
        frozenset({"eval", "val", "test"}),
    )
    if name.split == "eval":
        member = "/".join(filter(None, ("eval", member)))
    if name.any("std", "stddev"):
        return Meaning("reward_std", member)
    if name.any("min", "max", "var"):
        return OTHER
    return Meaning("reward", member, rank=int(scores), spare="score" if scores else "")


def _rl_distribution(name: Name) -> Meaning | None:
    if name.any("min", "max", "std"):
        return OTHER
    if name.any("entropy") and not name.any("cross", "target"):
        return Meaning("entropy")
    if name.any("kl"):
        return Meaning("kl", rank=int(name.any("approx", "old", "ppo", "approxkl")))
    lengths = name.any("length", "len", "lengths", "tokens") and name.any(
        "completion", "completions", "response", "responses", "generation", "generated"
    )
    if lengths:
        return (
            Meaning("completion_length")
            if not name.any("terminated", "clip", "clipped")
            else OTHER
        )
    return (
        OTHER
        if name.any(
            "advantage",
            "advantages",
            "value",
            "values",
            "score",
            "scores",
            "ep",
            "episode",
        )
        else None
    )


def _adversarial(name: Name, context: Context) -> Meaning | None:
    if not context.gan or not name.any(*LOSS, "err", "error", "hinge"):
        return None
    sides = (
        ("discriminator_loss", frozenset(("discriminator", "disc", "d"))),
        ("generator_loss", frozenset(("generator", "gen", "g"))),
    )
    for signal, words in sides:
        if not name.set.isdisjoint(words):
            if name.split == "eval":
                return OTHER
            return Meaning(
                signal,
                name.rest(
                    words, LOSS, TRAIN, PLAIN, SMOOTH, frozenset({"err", "error"})
                ),
                smooth=name.smooth,
                scope=name.scope,
            )
    return None


_MAIN_SCORES = wordset("acc accuracy accuracies")
_SCORES = wordset(
    "f1 bleu rouge chrf meteor map ap auc auroc iou miou dice em mcc ndcg hits precision recall"
)


def _score(name: Name, _: Context) -> Meaning | None:
    """Accuracy and other scores where more is better; scores that only validation has count as validation."""
    words = name.set | ({"f1"} if name.has("f", "1") else set())
    main = not words.isdisjoint(_MAIN_SCORES) or name.has("top", "1")
    if name.any(*LOSS) or not (main or words & _SCORES):
        return None
    heldout = name.split == "eval" or (
        name.split == "" and (not main or name.any("metrics"))
    )
    drop = (
        _MAIN_SCORES
        | wordset("top 1 rewards reward categorical sparse binary token tokens")
        if main
        else frozenset()
    )
    member = name.rest(drop, TRAIN, EVAL, PLAIN, SMOOTH)
    spare = "test" if not name.set.isdisjoint(TEST) else ""
    return Meaning(
        "eval_accuracy" if heldout else "accuracy",
        member,
        int(not name.split),
        spare,
        scope=name.scope,
    )


def _perplexity(name: Name, _: Context) -> Meaning | None:
    if not name.any("ppl", "perplexity"):
        return None
    if name.any(*BOUNDS):
        return OTHER
    member = name.rest(frozenset({"ppl", "perplexity"}), TRAIN, EVAL, PLAIN, SMOOTH)
    return Meaning(
        "eval_perplexity" if name.split == "eval" else "perplexity",
        member,
        scope=name.scope,
        smooth=name.smooth,
    )


def _loss(name: Name, context: Context) -> Meaning | None:
    worded, entropies = (
        name.any(*LOSS),
        not name.set.isdisjoint(ENTROPIES) or name.has("cross", "entropy"),
    )
    errors = wordset("mse mae rmse err error cost")
    if not worded and not entropies and name.set.isdisjoint(errors):
        return None
    if name.any(
        "best",
        "lowest",
        "min",
        "max",
        "std",
        "var",
        "count",
        "num",
        "improvement",
        "diff",
        "delta",
        "gap",
    ) or name.any("weight"):
        return OTHER
    if name.set & {"scale", "scaler", "clip"}:
        return OTHER
    signal = "eval_loss" if name.split == "eval" else "loss"
    if worded:
        member = name.rest(LOSS, TRAIN, EVAL, PLAIN, SMOOTH)
    else:
        member = name.rest(
            ENTROPIES,
            errors,
            frozenset({"cross", "entropy"}),
            TRAIN,
            EVAL,
            PLAIN,
            SMOOTH,
        )
    rank = 0 if name.any("total", "overall") else 2 if name.any("lm") else 1
    rank += 0 if worded else 3
    spare = "test" if not name.set.isdisjoint(TEST) else "lm" if name.any("lm") else ""
    fallback = not worded and (not entropies or name.any("bpb", "bpc", "bpd"))
    found = Meaning(signal, member, rank, spare, name.smooth, fallback, name.scope)
    if context.rl and signal == "loss":
        return replace(
            found, signal="policy_loss", rank=rank + 5, spare=spare or "total"
        )
    return found


_SECOND = wordset("s sec second seconds ms msec")
_STEPS = wordset("step steps it iter iters iteration iterations batch batches dt")


def _speed(name: Name, _: Context) -> Meaning | None:
    rates = name.any("tps", "throughput", "fps", "sps", "tgs", "toks")
    if rates or _is_rate(name):
        if name.split == "eval" or (
            not rates and not name.set.isdisjoint(_STEPS | {"flops"})
        ):
            return OTHER
        return Meaning(
            "tokens_per_second"
            if name.any("tokens", "tps", "tgs")
            else "samples_per_second",
            smooth=name.smooth,
        )
    if name.set.isdisjoint(_SECOND | {"time", "duration", "latency", "dt", "elapsed"}):
        return None
    if name.split == "eval" or name.any(
        "data",
        "epoch",
        "remaining",
        "load",
        "loader",
        "forward",
        "backward",
        "optimizer",
        "val",
    ):
        return OTHER
    if not name.set.isdisjoint(_STEPS):
        return Meaning("step_seconds", factor=_seconds(name), smooth=name.smooth)
    if name.set - TRAIN - SMOOTH - _SECOND <= {"time", "elapsed", "total"} and name.any(
        "time", "elapsed"
    ):
        return Meaning("time", rank=2, factor=_seconds(name), convert="clock")
    return OTHER


def _is_rate(name: Name) -> bool:
    """Whether it is so much per second, as in `tokens/s`, and not seconds per so much, as in `s/it`."""
    where = next((i for i, word in enumerate(name.words) if word in _SECOND), 0)
    before = name.text[: name.spans[where][0]].rstrip() if name.words else ""
    return where > 0 and (
        name.words[where - 1] == "per"
        or (
            before.endswith("/")
            and name.words[where - 1]
            in _STEPS | {"tokens", "samples", "images", "img", "examples"}
        )
    )


def _memory(name: Name, _: Context) -> Meaning | None:
    if not name.any("mem", "memory", "vram", "ram", "rss") or name.any(
        "percent", "%", "frac"
    ):
        return None
    sizes = {
        "gb": 1e9,
        "gib": 2.0**30,
        "mb": 1e6,
        "mib": 2.0**20,
        "kb": 1e3,
        "bytes": 1.0,
        "b": 1.0,
    }
    factor = next((sizes[w] for w in name.words if w in sizes), 0.0)
    if name.any("cpu", "host", "ram", "rss", "process"):
        return Meaning("host_memory", factor=factor)
    if name.any("reserved", "cached"):
        return Meaning("memory_reserved", factor=factor)
    return Meaning("memory_allocated", factor=factor, rank=int(name.any("max", "peak")))


def _counts(name: Name, _: Context) -> Meaning | None:
    words = name.set - TRAIN - {"num", "number", "of", "n", "global", "total"}
    if words in ({"batch", "size"}, {"bs"}, {"batchsize"}):
        return Meaning("batch_size")
    if words in (
        {"batch", "tokens"},
        {"tokens", "per", "batch"},
        {"tokens", "per", "step"},
    ):
        return Meaning("batch_tokens")
    if words - {"seen", "consumed", "processed", "input", "so", "far"} == {"tokens"}:
        return Meaning("tokens")
    return None


def _clutter(name: Name, _: Context) -> Meaning | None:
    """What is known to be no signal: positions, plans, system readings."""
    known = wordset(
        "step steps iteration iterations iter iters update updates timesteps batch batches samples examples date pid gpu cpu disk network power"
    )
    return OTHER if name.any(*known) else None


RULES: tuple[Rule, ...] = (
    _position, _preference, _mixture, _constant, _numerics, _norm, _rate, _inside, _memory, _adversarial, _reinforcement, _score,
    _perplexity, _loss, _counts, _speed, _clutter,
)  # fmt: skip


def _seconds(name: Name) -> float:
    """Factor to seconds by the unit in the name."""
    return 1e-3 if name.any("ms", "msec", "millis", "milliseconds") else 1.0
