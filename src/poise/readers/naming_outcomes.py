"""Names of what a run is after: losses, scores, rewards."""

from __future__ import annotations

from dataclasses import replace

from poise.readers.meaning import OTHER, REWARD, Context, Meaning
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


def preference(name: Name, context: Context) -> Meaning | None:
    """Margins are judged apart; chosen and rejected rewards drift in health and are not."""
    if name.any("margin", "margins") and (context.preference or name.any(*REWARD)):
        return Meaning("reward_margin") if name.split != "eval" else OTHER
    if context.preference and name.any("chosen", "rejected"):
        return OTHER
    return None


def reinforcement(name: Name, context: Context) -> Meaning | None:
    """The names of runs with rewards."""
    if not context.rl:
        return None
    return _rl_loss(name) or _rl_reward(name) or _rl_distribution(name)


def _rl_loss(name: Name) -> Meaning | None:
    if not name.any(*LOSS, "surrogate"):
        return None
    last = split_name(name.text.rpartition("/")[2])
    name = last if last.any(*LOSS) else name
    if name.any("entropy") and not name.any("cross"):
        return Meaning("entropy", rank=1, convert="entropy-sign")
    if name.any("kl"):
        return Meaning("kl", rank=1)
    critics = wordset("value values critic vf v qf q td baseline")
    actors = wordset("policy actor pg pi surrogate gradient ppo")
    steady = (LOSS, TRAIN, PLAIN, SMOOTH)
    if not name.set.isdisjoint(critics):
        return Meaning("value_loss", name.rest(*steady, critics), spare=name.rest(*steady) or "value")
    if not name.set.isdisjoint(actors):
        return Meaning("policy_loss", name.rest(*steady, actors), spare=name.rest(*steady) or "policy")
    return None


def _rl_reward(name: Name) -> Meaning | None:
    if name.any("chosen", "rejected", "zero"):
        return OTHER
    scores = name.any("score", "scores") and name.any("objective", "critic", "mean", "env")
    if not (name.any(*REWARD) or scores):
        return None
    if name.any("accuracies", "accuracy"):
        return None
    drop = frozenset(REWARD) | wordset("objective critic rollout ep episode env charts score scores per undiscounted")
    member = name.rest(drop, TRAIN, PLAIN, SMOOTH, wordset("std stddev eval val test"))
    if name.split == "eval":
        member = "/".join(filter(None, ("eval", member)))
    if name.any("std", "stddev"):
        return Meaning("reward_std", member)
    if name.any("min", "max", "var", "length", "len", "steps", "time"):
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
        return Meaning("completion_length") if not name.any("terminated", "clip", "clipped") else OTHER
    return OTHER if name.any("advantage", "advantages", "value", "values", "score", "scores", "ep", "episode") else None


def adversarial(name: Name, context: Context) -> Meaning | None:
    """The two sides of adversarial training."""
    if not context.gan or not name.any(*LOSS, "err", "error", "hinge"):
        return None
    sides = (
        ("discriminator_loss", wordset("discriminator disc d critic")),
        ("generator_loss", frozenset(("generator", "gen", "g"))),
    )
    for signal, words in sides:
        if not name.set.isdisjoint(words):
            if name.split == "eval":
                return OTHER
            return Meaning(
                signal,
                name.rest(words, LOSS, TRAIN, PLAIN, SMOOTH, frozenset({"err", "error"})),
                smooth=name.smooth,
                scope=name.scope,
            )
    return None


_MAIN_SCORES = wordset("acc accuracy accuracies")
_SCORES = wordset("f1 bleu rouge chrf meteor map ap auc auroc iou miou dice em mcc ndcg hits precision recall")


def score(name: Name, _: Context) -> Meaning | None:
    """Accuracy and other scores where more is better; scores that only validation has count as validation."""
    words = name.set | ({"f1"} if name.has("f", "1") else set())
    main = not words.isdisjoint(_MAIN_SCORES) or name.has("top", "1") or name.has("top", "5")
    if name.any(*LOSS) or not (main or words & _SCORES):
        return None
    heldout = name.split == "eval" or (name.split == "" and (not main or name.any("metrics")))
    drop = (
        _MAIN_SCORES | wordset("top 1 rewards reward categorical sparse binary token tokens") if main else frozenset()
    )
    member = name.rest(drop, TRAIN, EVAL, PLAIN, SMOOTH)
    spare = "test" if not name.set.isdisjoint(TEST) else ""
    return Meaning("eval_accuracy" if heldout else "accuracy", member, int(not name.split), spare, scope=name.scope)


def perplexity(name: Name, _: Context) -> Meaning | None:
    """Perplexities."""
    if not name.any("ppl", "perplexity"):
        return None
    if name.any(*BOUNDS):
        return OTHER
    member = name.rest(frozenset({"ppl", "perplexity"}), TRAIN, EVAL, PLAIN, SMOOTH)
    return Meaning(
        "eval_perplexity" if name.split == "eval" else "perplexity", member, scope=name.scope, smooth=name.smooth
    )


def loss(name: Name, context: Context) -> Meaning | None:
    """Losses: the whole, its parts as members, and errors that stand for it where there is none."""
    worded, entropies = (name.any(*LOSS), not name.set.isdisjoint(ENTROPIES) or name.has("cross", "entropy"))
    errors = wordset("mse mae rmse err error cost")
    if not worded and not entropies and name.set.isdisjoint(errors):
        return None
    if name.any(
        "best", "lowest", "min", "max", "std", "var", "count", "num", "improvement", "diff", "delta", "gap"
    ) or name.any("weight"):
        return OTHER
    if name.set & {"scale", "scaler", "clip"} or (
        context.gan and (not worded or name.any("score", "scores", "fake", "real"))
    ):
        return OTHER
    signal = "eval_loss" if name.split == "eval" else "loss"
    if worded:
        member = name.rest(LOSS, TRAIN, EVAL, PLAIN, SMOOTH)
    else:
        member = name.rest(ENTROPIES, errors, frozenset({"cross", "entropy"}), TRAIN, EVAL, PLAIN, SMOOTH)
    rank = 0 if name.any("total", "overall") else 2 if name.any("lm") else 1
    rank += (0 if worded else 3) + (0 if name.set.isdisjoint(TEST) else 3)
    spare = "test" if not name.set.isdisjoint(TEST) else "lm" if name.any("lm") else ""
    fallback = not worded and (not entropies or name.any("bpb", "bpc", "bpd"))
    found = Meaning(signal, member, rank, spare, name.smooth, fallback, name.scope)
    if context.rl and signal == "loss":
        return replace(found, signal="policy_loss", rank=rank + 5, spare=spare or "total")
    return found
