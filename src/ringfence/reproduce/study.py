"""What a table or figure is made from: an experiment, its variants, and where their results are.

results/<experiment>/<variant>/
  seed-<n>.json    a summary for each seed (schema 2)
  timing.json      seconds of each
  manifest.json    command, version, hash of the experiment's file, settings, seeds, order of play
  table.md, table.json, pictures

runs/reproduce/ has all that is played, trained and demonstrated on the way, each in a folder that
is found again by what determines it, so that no experiment makes again what another has.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ringfence.disk import read_json, remove_partials, write_json
from ringfence.errors import InvalidInput
from ringfence.reproduce.experiment import Experiment, Variant, differences
from ringfence.runs.backend import Backend
from ringfence.runs.folder import only_driver

Say = Callable[[str], None]
#: Updates of a training between two lines about it.
SAY_EVERY = 50
Summary = dict[str, Any]

RUNS = Path("runs") / "reproduce"
MANIFEST, TIMES = "manifest.json", "timing.json"
NOT_RECORDED = "not recorded"
HASH_DIGITS = 12


@dataclass(frozen=True)
class Study:
    """An experiment with the variants whose results are looked at.

    out: results/<experiment>; options: of the table or figure that is made; data: a file of the
    user's that it is about.
    """

    experiment: Experiment
    variants: tuple[Variant, ...]
    out: Path
    say: Say = print
    workers: int | Backend = 1
    seeds: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None

    @property
    def processes(self) -> int:
        """Of this machine that may be used at once: one, where an engine solves elsewhere."""
        return self.workers if isinstance(self.workers, int) else 1

    def folder(self, variant: Variant) -> Path:
        return self.out / variant.name

    def summaries(self, variant: Variant) -> dict[int, Summary]:
        """The summaries that are there, by seed."""
        return read_summaries(self.folder(variant))

    def seconds(self, variant: Variant) -> dict[int, float]:
        path = self.folder(variant) / TIMES
        times = json.loads(path.read_text()) if path.is_file() else {}
        return {int(name.removeprefix("seed-")): float(value) for name, value in times.items()}


def read_summaries(folder: Path) -> dict[int, Summary]:
    paths = {int(p.stem.removeprefix("seed-")): p for p in folder.glob("seed-*.json")}
    return {seed: json.loads(paths[seed].read_text()) for seed in sorted(paths)}


def found_variants(experiment: Experiment, out: Path, played: list[Variant]) -> list[Variant]:
    """Those of the file that have results or were played, then others that are in `out`."""
    now = {v.name: v for v in played}
    known = {**experiment.variants, **now}
    there = [p.parent.name for p in sorted(out.glob(f"*/{MANIFEST}"))]
    names = [n for n in known if n in there or n in now]
    names += [n for n in there if n not in known]
    kind = experiment.file.kind
    return [now[n] if n in now else _as_played(out / n, known.get(n), kind) for n in names]


def _as_played(folder: Path, known: Variant | None, kind: str) -> Variant:
    """As it was played, which the file need not say any more. kind: where nothing says another."""
    manifest = json.loads((folder / MANIFEST).read_text())
    recorded = isinstance(manifest["settings"], dict)
    if known is None:
        seeds = max(manifest["seeds"], default=-1) + 1
        kind = manifest.get("kind", kind)
        known = Variant(folder.name, {}, seeds, manifest["reason"], kind=kind)
    if not recorded:
        return known
    return replace(known, settings=manifest["settings"], reason=manifest["reason"])


def telling(say: Say) -> Callable[[dict[str, Any]], None]:
    """A run's events as lines."""

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "iteration":
            c, reward = event["constraint"]["description"], event["learner_reward_mean"]
            say(f"  iteration {event['i']}/{event['total']}: {c}; learners earn {reward:.4g}")
        elif event["event"] == "update" and event["update"] % SAY_EVERY == 0:
            where = f"  {event['where']}" if "where" in event else ""
            say(
                f"  update {event['update']}/{event['updates']}  reward {event['reward_rate']:.0f}"
                f"  cost {event['cost']:.1f}  lam {event['lam']:.3f}{where}"
            )
        elif event["event"] == "lost":
            say(f"  {event['why']} ({event['where']}); it goes on elsewhere")

    return tell


# Found again -----------------------------------------------------------------------------------


def key_of(document: Mapping[str, Any]) -> str:
    """The name of what this determines."""
    canonical = json.dumps(document, sort_keys=True, allow_nan=False)
    return sha256(canonical.encode()).hexdigest()[:HASH_DIGITS]


def place(kind: str, label: str, document: Mapping[str, Any]) -> Path:
    """The folder of what `document` determines: as it is there, or as it shall be called."""
    key = key_of(document)
    there = sorted((RUNS / kind).glob(f"*-{key}"))
    return there[0] if there else RUNS / kind / f"{label}-{key}"


_LOCKS: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One thread at a time: what several seeds or variants need is made by the first of them."""
    with _LOCKS[name]:
        yield


def kept(kind: str, document: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """A finished part of an analysis from its file, or made and kept."""
    path = RUNS / "parts" / f"{kind}-{key_of(document)}.json"
    if not path.is_file():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, made)
    return json.loads(path.read_bytes())


def finished(run: Path, make: Callable[[], Summary]) -> tuple[Summary, float]:
    """The summary of a run and the seconds that it took: from its files, or made now."""
    if not (run / "summary.json").is_file():
        run.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with only_driver(run):
            remove_partials(run)
            summary = make()
        write_json(run / TIMES, {"seconds": time.monotonic() - began})
        write_json(run / "summary.json", summary)
    return read_json(run / "summary.json"), float(read_json(run / TIMES)["seconds"])


# What was played -------------------------------------------------------------------------------


def refuse_other_results(variant: Variant, folder: Path) -> None:
    """A table must not mix seeds of different games."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    settings = json.loads(path.read_text())["settings"]
    if settings == NOT_RECORDED:
        return
    different = differences(settings, variant.settings)
    if different:
        raise InvalidInput(
            f"{folder} has results of other settings ({different}); move it away or give another "
            "--out"
        )


def note_seconds(path: Path, seed: int, seconds: float) -> None:
    """Wall-clock seconds of a seed, beside the summaries."""
    known = json.loads(path.read_text()) if path.is_file() else {}
    write_json(path, {**known, f"seed-{seed}": seconds})


def note(
    folder: Path,
    experiment: Experiment,
    command: str,
    version: str,
    variant: Variant | None = None,
    seed: int | None = None,
) -> None:
    """manifest.json of a variant after a seed of it, or of an experiment."""
    path = folder / MANIFEST
    before = json.loads(path.read_text()) if path.is_file() else {}
    document: dict[str, Any] = {"experiment": experiment.name}
    if variant is not None:
        order = before.get("order", [])
        if isinstance(order, list) and seed not in order:
            order = [*order, seed]
        document |= {"variant": variant.name, "reason": " ".join(variant.reason.split())}
        document |= {"settings": variant.settings, "order": order}
        document |= {} if variant.kind == experiment.file.kind else {"kind": variant.kind}
        document["seeds"] = sorted({*before.get("seeds", []), seed})
    document |= {"command": command, "version": version, "experiment_sha256": experiment.sha256}
    folder.mkdir(parents=True, exist_ok=True)
    if document != before:
        write_json(path, document)
