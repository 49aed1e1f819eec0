"""Names of the machinery: gradients, rates, scales, insides of the model, speed, memory, counters."""

from __future__ import annotations

from poise.readers.meaning import OTHER, Context, Meaning
from poise.readers.words import LOSS, PLAIN, SMOOTH, TRAIN, Name, wordset

_SECOND = wordset("s sec second seconds ms msec")
_STEPS = wordset("step steps it iter iters iteration iterations batch batches update updates dt")
_ITEMS = wordset("tokens samples images img examples sequences frames")
_GRADIENT = wordset("grad grads gradient gradients")
_WEIGHTS = wordset("param params parameter parameters weight weights")
_UPDATE = wordset("update updates delta")
_NORM = wordset("norm norms l2")
_SQUARE = wordset("square squared sq sqr")
_AROUND_NORM = (
    _GRADIENT
    | _NORM
    | _SQUARE
    | wordset("total global pre post before after clip clipping clipped unclipped model l 2 2.0 optim optimizer")
)
_ROUTER = wordset("aux auxiliary balance balancing router moe routing")
_ATTENTION = wordset("attn attention attentions qk")
_AROUND_INSIDE = _ATTENTION | wordset("logit logits max maximum entropy activation activations act absmax")
_NOT_SIGNALS = wordset(
    "coef coeff coefficient weighting beta lambda temperature temp eta remaining percentage percent momentum flos flops tflops mfu hfu"
    " explained wer cer fid"
)
_CLUTTER = _STEPS | _ITEMS | wordset("timesteps date pid gpu cpu disk network power runtime seed patience")
_BYTES = {"gb": 1e9, "gib": 2.0**30, "mb": 1e6, "mib": 2.0**20, "kb": 1e3, "bytes": 1.0, "b": 1.0}


def position(name: Name, _: Context) -> Meaning | None:
    """Epochs and clocks."""
    words = name.set - TRAIN - {"trainer", "current", "cur", "progress", "state"}
    if words in ({"epoch"}, {"epochs"}):
        return Meaning("epoch")
    if words in ({"timestamp"}, {"wall", "time"}, {"walltime"}, {"created", "at"}):
        return Meaning("time", rank=1, convert="start")
    if words in ({"runtime"}, {"elapsed"}, {"elapsed", "time"}, {"total", "time"}, {"time", "total", "s"}):
        return Meaning("time", factor=_seconds(name))
    return None


def constant(name: Name, _: Context) -> Meaning | None:
    """Coefficients, shares, plans and limits that look like signals by one of their words."""
    if not name.set.isdisjoint(_NOT_SIGNALS):
        return OTHER
    if name.any("frac", "fraction", "ratio") and not name.any("update"):
        clips = name.any("clip", "clipped") and not name.set.isdisjoint(_GRADIENT)
        return Meaning("clip_share") if clips else OTHER
    limits = name.any("range", "threshold", "max", "value") or name.words[0] == "clip"
    return OTHER if name.any("clip") and limits and not name.any("before", "after", "pre", "post", *LOSS) else None


def norm(name: Name, _: Context) -> Meaning | None:
    """Norms of gradients, weights and updates; a bare `norm` beside a loss is a gradient's."""
    if name.set.isdisjoint(_NORM):
        return None
    if name.words == ("norm",):
        return Meaning("grad_norm", rank=5, fallback=True)
    convert = "" if name.set.isdisjoint(_SQUARE) else "sqrt"
    if not name.set.isdisjoint(_GRADIENT) or name.words[:2] in (("total", "norm"), ("global", "norm")):
        if name.any("min", "max", "std", "var"):
            return OTHER
        clipped = name.any("clipped", "post", "after") and not name.any("before", "pre", "unclipped")
        signal = "grad_norm_clipped" if clipped else "grad_norm"
        return Meaning(signal, name.member(_AROUND_NORM), int(bool(convert)), smooth=name.smooth, convert=convert)
    if not name.set.isdisjoint(_UPDATE):
        return Meaning("update_norm", name.member(_AROUND_NORM | _UPDATE), convert=convert)
    if not name.set.isdisjoint(_WEIGHTS):
        return Meaning("param_norm", name.member(_AROUND_NORM | _WEIGHTS), convert=convert)
    return OTHER


def numerics(name: Name, _: Context) -> Meaning | None:
    """Loss scale, skipped steps, counts of NaN."""
    counted = name.any(
        "step", "steps", "iteration", "iterations", "iters", "batches", "updates", "count", "number", "num"
    )
    if name.any("scale", "scaler") and not name.any("lr", "rate", "logit", "weight", "reward"):
        sole = name.set - TRAIN <= {"scale"}
        return Meaning("loss_scale", rank=int(sole), fallback=sole)
    if name.any("skipped", "skip") and counted:
        return Meaning("skipped_steps", rank=int(name.any("nan")))
    if name.any("nonfinite") or (name.any("nan", "nans", "inf") and counted):
        return Meaning("nonfinite_count")
    return Meaning("skipped_steps", rank=2) if name.any("overflow", "overflows") else None


def rate(name: Name, _: Context) -> Meaning | None:
    """Learning rates; members are parameter groups."""
    if not (name.any("lr", "lrs") or name.has("learning", "rate")) or name.any(*LOSS):
        return None
    if name.any("decay", "mult", "multiplier", "scale", "factor", "warmup"):
        return OTHER
    return Meaning("learning_rate", name.member(wordset("lr lrs learning rate")))


def mixture(name: Name, _: Context) -> Meaning | None:
    """Balancing losses and the load of experts."""
    balancing = not name.set.isdisjoint(_ROUTER) or name.has("z", "loss")
    if name.any(*LOSS) and balancing:
        member = name.rest(LOSS, TRAIN, PLAIN, SMOOTH, wordset("aux auxiliary moe"))
        return Meaning("aux_loss", member, spare="aux", smooth=name.smooth) if name.split != "eval" else OTHER
    if name.any("expert", "experts") and name.any("max") and name.any("load", "share", "usage", "frac", "tokens"):
        return Meaning("expert_load_max")
    return None


def inside(name: Name, _: Context) -> Meaning | None:
    """What happens inside the model: attention, activations, size of updates."""
    attention, member = not name.set.isdisjoint(_ATTENTION), name.member(_AROUND_INSIDE)
    if name.any("logit", "logits") and name.any("max", "maximum") and (attention or not member):
        return Meaning("attention_logit_max", member)
    if attention and name.any("entropy"):
        return Meaning("attention_entropy", member)
    if name.any("activation", "activations", "act") and name.any("max", "absmax"):
        return Meaning("activation_max", member)
    if name.any("update") and name.any("ratio"):
        return Meaning("update_ratio", name.member(wordset("update ratio weight to param")))
    return None


def memory(name: Name, _: Context) -> Meaning | None:
    """Memory, in bytes by the unit in the name; factor 0 where it has none."""
    if not name.any("mem", "memory", "vram", "ram", "rss") or name.any("percent", "%", "frac"):
        return None
    factor = next((_BYTES[w] for w in name.words if w in _BYTES), 0.0)
    if name.any("cpu", "host", "ram", "rss", "process"):
        return Meaning("host_memory", factor=factor)
    if name.any("reserved", "cached"):
        return Meaning("memory_reserved", factor=factor)
    return Meaning("memory_allocated", rank=int(name.any("max", "peak")), factor=factor)


def counts(name: Name, _: Context) -> Meaning | None:
    """Batch sizes and tokens."""
    words = name.set - TRAIN - wordset("num number of n global total")
    if words in ({"batch", "size"}, {"bs"}, {"bsz"}, {"batchsize"}):
        return Meaning("batch_size")
    if words in ({"batch", "tokens"}, {"tokens", "per", "batch"}, {"tokens", "per", "step"}):
        return Meaning("batch_tokens")
    return Meaning("tokens") if words - wordset("seen consumed processed input so far") == {"tokens"} else None


def speed(name: Name, _: Context) -> Meaning | None:
    """Throughput and durations."""
    throughput = name.any("tps", "wps", "throughput", "fps", "sps", "tgs")
    if throughput or _is_rate(name):
        if name.split == "eval" or (_is_rate(name) and not name.set.isdisjoint(_STEPS)):
            return OTHER
        signal = "tokens_per_second" if name.any("tokens", "tps", "tgs", "wps") else "samples_per_second"
        return Meaning(signal, smooth=name.smooth)
    if name.set.isdisjoint(_SECOND | wordset("time duration latency dt elapsed")):
        return None
    if name.split == "eval" or name.any("data", "epoch", "load", "loader", "forward", "backward", "optimizer"):
        return OTHER
    if not name.set.isdisjoint(_STEPS):
        return Meaning("step_seconds", factor=_seconds(name), smooth=name.smooth)
    if name.any("time", "elapsed") and name.set - TRAIN - SMOOTH - _SECOND <= {"time", "elapsed", "total"}:
        return Meaning("time", rank=2, convert="clock", factor=_seconds(name))
    return OTHER


def _is_rate(name: Name) -> bool:
    """Whether it is so much per second, as in `tokens/s`, and not seconds per so much, as in `s/it`."""
    where = next((i for i, word in enumerate(name.words) if word in _SECOND), 0)
    if not where:
        return False
    slash = name.text[: name.spans[where][0]].rstrip().endswith("/")
    return name.words[where - 1] == "per" or (slash and name.words[where - 1] in _STEPS | _ITEMS)


def clutter(name: Name, _: Context) -> Meaning | None:
    """What is known to be no signal: positions, plans, system readings."""
    return None if name.set.isdisjoint(_CLUTTER) else OTHER


def _seconds(name: Name) -> float:
    """Factor to seconds by the unit in the name."""
    return 1e-3 if name.any("ms", "msec", "millis", "milliseconds") else 1.0
