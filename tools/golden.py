"""Golden runs: small games on each line of the product, played by two versions and compared.

    python tools/golden.py record --ringfence VENV/bin/ringfence --dialect old|new --out FOLDER
    python tools/golden.py compare OLD_FOLDER NEW_FOLDER

`record` plays PLAYS in OUT/runs (what each printed: NAME.log) and writes LINE.json (numbers, words,
hashes) and LINE.safetensors (arrays). `compare` wants c_1 .. c_N, demonstrations and selection, and
every number and array that both have, to be equal bit for bit; it counts what only one has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

Entry = dict[str, Any]

#: $word in a command or a file stands for one of these; "a || b" is a in the old dialect, b in the
#: new one (so, too, for whole commands and files).
WORDS = """
mujoco    learn --world ant --demos demos/ant $truth --iterations 2 --seed 1 $ppo
bullet    learn --world ant-bullet --demos demos/ant-bullet $truth --iterations 2 --seed 1 $ppo
ppo       --steps 2048 --ppo copies=16 --ppo batch=256 --ppo passes=2 --ppo hidden=[16] \
--ppo evaluation_episodes=2 || --steps 2048 --set solver.copies=16 \
--set solver.passes=2 --set solver.hidden=[16] --set solver.evaluation_episodes=2
truth     --truth "speed <= 0.75"
speed     --class "speed <= ?"
make      --steps 4096 --paths 4 --heldout 2
slip      --slip 0.05 --horizon 30
icl       --method icl --task 0 --buffer 1 --anneal 0.1 --iterations 4 || --method icl --task 0 \
--set game.buffer=1 --set game.anneal=0.1 --iterations 4
mini      --world ant-maze:mini.txt --horizon 400 --paths 2 --heldout 1
walks     || --set solver.episodes=2
clone     --clone-steps 100 || --set opening.steps=100
no_clone  --clone-steps 0 || --set opening.kind=none --set opening.probe=true
no_probe  --no-probe || --set opening.probe=false
budget    --expert-budget 20
tolerance --tolerance 5 || --set player.tolerance=5
cheetah   kind = "gym", env = "HalfCheetah-v5", steps = 100, features = [{ name = "x_velocity" }]
in_game   , probe = false, player = "payoff", expert_budget = 2.0 ||
player    || player = { kind = "payoff", expert_budget = 2.0 }
opening   clone = { steps = 100 } || opening = { steps = 100 }
unprobed  clone = { steps = 100 } || opening = { steps = 100, probe = false }
dropped   --drop-failed || --set demos.drop_failed=true
weighted  --player weighted --carry critics || --set player.weighted=true \
--set opening.carry=critics
state     --full-state --start-share 0.3 --initial free || --set world.full_state=true \
--set solver.start_share=0.3 --set opening.initial=free
early     --stop-share 0.9 || --set game.stop_share=0.9
pid       --solver pid || --solver lagrangian --set solver.multiplier=pid
gradient  --multiplier gradient || --set solver.multiplier=gradient
lp        --solver lp || --set solver.kind=lp
lazy      --expert-delta 0.3 || --set experts.delta=0.3
solver    ppo = { $settings } || solver = { $settings }
settings  env_steps = 2048, copies = 8, batch = 128, hidden = [16], evaluation_episodes = 4 || \
env_steps = 2048, copies = 8, hidden = [16], evaluation_episodes = 4
"""
#: The files beside the runs.
FILES = {
    "walls.txt": "S...#...0\n....#....\n....#....\n" + 3 * ".........\n" + "S.......1\n",
    "open.txt": "S.......0\n" + 5 * ".........\n" + "S.......1\n",
    "corner.txt": "S.....\n......\n#.....\n##....\n###...\n####.0\n",
    "mini.txt": "S#0\n...\n..1\n",
    "two.toml": """world = { $cheetah, truth = "x_velocity <= 0.5", tasks = [{ name = "plain" }, \
{ name = "frugal", kwargs = { ctrl_cost_weight = 0.5 } }] }
game = { constraint = "x_velocity <= ?", method = "mt-icl", iterations = 2 $in_game }
demos = { path = "demos/gym-two" }\n$player\n$unprobed\n$solver""",
    "one.toml": """world = { kind = "gym", env = "Pendulum-v1", truth = "turning <= 1.5", \
features = [{ name = "turning", unit = "rad/s", column = 2 }] }
game = { constraint = "turning <= ?", iterations = 2, buffer = 4.0, anneal = 2.0 }
demos = { path = "demos/gym-one" }\n$opening\n$solver""",
    "new.toml": """world = { $cheetah, \
tasks = [{ name = "costly", kwargs = { ctrl_cost_weight = 1.0 } }] }\n$solver""",
}
#: line/name and command; --out is added. Other runs that a command names, itself or in a file that
#: it reads, are played before it.
PLAYS = """
maze/regression     learn --world maze --paths 4 --heldout 2
maze/ftrl           learn --world maze --player ftrl --iterations 4 --seed 2
maze/linear         learn --world maze --class linear --iterations 3
maze/icl            learn --world maze --method icl --task 3
maze/lp             learn --world maze --solver lp --paths 4 --heldout 2
maze/exact          learn --world maze --experts exact || learn --world maze \
--set demos.experts=exact
maze/unrestricted   learn --world maze --unrestricted --temperature 0.2 --iterations 3 || \
learn --world maze --set player.restricted=false --set solver.temperature=0.2 --iterations 3
grid/tasks          learn --world walls.txt --horizon 30
grid/slip           learn --world walls.txt $slip $lazy --paths 20 --heldout 10 $icl
grid/no-truth       learn --world open.txt $slip --demos grid/slip/demos $icl
grid/linear         learn --world corner.txt --class linear --reward exp-distance --iterations 3 \
|| learn --world corner.txt --class linear --set world.reward=exp-distance --iterations 3
grid/slip-tasks     learn --world walls.txt $slip $lazy --iterations 3
ant/regression      $mujoco $speed $clone $no_probe
ant/not-needed      $mujoco $speed $clone --seed 0
ant/payoff          $mujoco $speed --player payoff $budget $dropped $clone $no_probe
ant/weighted        $mujoco --class linear --on x,y $weighted $clone
ant/mlp             $mujoco --class mlp --on x,y $tolerance $clone $no_probe
ant/full-state      $mujoco --class mlp $state $no_clone
ant-bullet/regression $bullet $speed $clone $no_probe
ant-bullet/payoff   $bullet $speed --player payoff $budget $clone $no_probe $early
gym/two             learn two.toml
gym/one             learn one.toml --seed 3
ant-maze/paper      learn --world ant-maze --paths 2 --heldout 1 --iterations 2 $walks
ant-maze/unrestricted learn $mini --iterations 2 --unrestricted || learn $mini --iterations 2 \
--set player.restricted=false $walks
ant-maze/one-task   learn $mini --iterations 2 --task 1 --seed 1 $walks
solve/maze          solve --world maze --constraint "col + row <= 12"
solve/maze-truth    solve --world maze --solver lp --task 4
solve/maze-learned  solve --world maze $pid --constraint maze/regression --task 2
solve/ant           solve --world ant --constraint "speed <= 0.75" --delta 20 $ppo
solve/ant-on solve --world ant --policy solve/ant $ppo --constraint ant/payoff $gradient
solve/ant-bullet    solve --world ant-bullet --constraint "speed <= 0.75" --delta 20 $ppo
solve/gym solve --world gym:HalfCheetah-v5 --feature x_velocity --constraint "x_velocity <= 1" $ppo
transfer/maze-avoid transfer maze/regression --goal 2,7 --start 9,3 --unknown avoid
transfer/maze-allow transfer maze/lp --goal 4,4 --start 9,3 --unknown allow $lp
transfer/maze-uncovered transfer maze/icl --goal 0,7 --start 9,3 --unknown allow
transfer/grid       transfer grid/tasks --goal 1,7 --start 5,0 --unknown allow
transfer/ant-maze   transfer ant-maze/paper --goal 2,7 --start 9,3
transfer/ant-own    transfer ant/regression --clearance 0.05 --steps 2048 --episodes 4
transfer/ant-told   transfer ant/regression --clearance 0.05 --steps 0 --episodes 4
transfer/gym-own    transfer gym/two --task frugal --clearance 0.1 --steps 1024 --episodes 4
transfer/gym-new    transfer gym/two --task new.toml --episodes 4 --delta 1
demos/maze          demos make --world maze --paths 3 --heldout 2 --seed 5
demos/maze-noisy    demos make --world maze --noise 0.1 --contaminated 0.2
demos/ant           demos make --world ant $truth $make
demos/ant-noisy     demos make --world ant $truth --policy solve/ant --noise 0.2 --paths 2
demos/ant-bullet    demos make --world ant-bullet $truth $make
demos/gym-two       demos make two.toml $make
demos/gym-one       demos make one.toml $make
demos/ant-maze      demos make $mini
evaluate/maze       evaluate maze/regression --world maze
evaluate/maze-demos evaluate maze/icl --world maze --demos demos/maze-noisy
evaluate/inequality evaluate "col + row <= 12" --world maze --solver lp
evaluate/ant        evaluate ant/regression --demos demos/ant
resume/ant          resume resume/ant --iterations 3
resume/gym          resume resume/gym --iterations 3
"""
COPIES = {"resume/ant": "ant/regression", "resume/gym": "gym/two"}  # what is played on
#: Keys that the new version calls otherwise: (pattern of the new key, the old one).
RENAMED: list[tuple[str, str]] = [
    (r"^selection\.(gap|learner_reward|rewarding|enough_reward)", r"heldout.\1"),
    (r"^policy/policy:", "policy:"),
]
#: Entries that say how a run came about, or say numbers again in words.
IGNORED = {"schema", "command", "versions", "ledger", "description", "provenance", "features"}
STRICT_WORDS = {"labels", "tasks", "name"}  # others (warnings, reasons) may be said anew


def table(text: str) -> dict[str, str]:
    """The first word of each line, and the rest."""
    return {line.split()[0]: line.partition(" ")[2].strip() for line in text.strip().splitlines()}


class Recorder:
    """Plays commands of one dialect in OUT/runs, each once."""

    def __init__(self, command: Path, dialect: str, out: Path, also: str) -> None:
        self.command, self.out, self.also = command.absolute(), out.absolute(), shlex.split(also)
        self.runs, self.played = self.out / "runs", dict[str, Entry]()

        def mine(text: str) -> str:
            said = text.split("||")[-1 if dialect == "new" else 0].strip()
            return re.sub(r"\$(\w+)", lambda word: mine(table(WORDS)[word[1]]), said)

        self.words = {name: shlex.split(mine(text)) for name, text in table(PLAYS).items()}
        self.files = {name: mine(text) + "\n" for name, text in FILES.items()}
        self.runs.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (self.runs / name).write_text(text)

    def play(self, name: str) -> Entry:
        """Play a command and all that it needs; its exit code, last words and seconds."""
        if name in self.played:
            return self.played[name]
        words, target, copied = self.words[name], self.runs / name, COPIES.get(name, "")
        inside = [self.files.get(w, "") for w in words if words[0] == "learn"]
        for other in self.words:
            needed = rf"(?<![\w/-]){re.escape(other)}(?![\w-])"
            if other != name and re.search(needed, " ".join([copied, *words, *inside])):
                self.play(other)
        shutil.rmtree(target, ignore_errors=True)
        target.with_suffix(".json").unlink(missing_ok=True)
        target.parent.mkdir(exist_ok=True)
        if copied and (self.runs / copied).is_dir():
            shutil.copytree(self.runs / copied, target)
        if words[0] != "resume":
            words = [*words, "--out", f"{name}.json" if words[0] == "evaluate" else name]
        words += self.also if words[0] == "learn" else []
        began, log = time.monotonic(), target.with_suffix(".log")
        with log.open("w") as file:
            print(shlex.join(words), file=file, flush=True)
            done = subprocess.run([self.command, *words], cwd=self.runs, stdout=file, stderr=file)
        said = log.read_text().strip().splitlines()[-1] if done.returncode else ""
        seconds, entry = round(time.monotonic() - began, 1), {"code": done.returncode, "said": said}
        print(f"{name:24} {seconds:6.1f} s  {said}".rstrip(), flush=True)
        return self.played.setdefault(name, {**entry, "seconds": seconds})

    def record(self, line: str) -> None:
        """Play a line; then `keep`, in the version's own Python, what is to be compared."""
        (self.out / f"{line}.safetensors").unlink(missing_ok=True)
        entries = {n: self.play(n) for n in self.words if n.startswith(f"{line}/")}
        (self.out / f"{line}.json").write_text(json.dumps(entries))
        subprocess.run([self.command.parent / "python", __file__, "keep", self.out, line])


def keep(out: Path, line: str) -> None:
    """Add to the entries of a line what their runs wrote, and write the arrays beside them."""
    import h5py

    import ringfence

    entries: dict[str, Entry] = json.loads((out / f"{line}.json").read_bytes())
    arrays: dict[str, np.ndarray] = {}
    for name, entry in entries.items():
        run = out / "runs" / name
        saved = {f"c_{n}": c for n, c in enumerate(sorted(run.glob("constraints/*")), 1)}
        entry |= {"constraints": len(saved), "numbers": {}, "words": {}, "demos": {}}
        saved["chosen"] = run / "constraint"
        documents = [("", run / "summary.json"), ("", run.with_suffix(".json"))]
        documents += [("evidence", run / "evidence.json"), ("demos", run / "demonstrations.json")]
        documents += [(c, folder / "constraint.json") for c, folder in saved.items()]
        for prefix, path in documents:
            document = json.loads(path.read_bytes()) if path.is_file() else {}
            for key, value in leaves(document, prefix):
                entry["words" if '"' in json.dumps(value) else "numbers"][key] = value
            if document and prefix in saved:  # at all cells of a table, else at seeded points
                at = 3 * np.random.default_rng(20).normal(size=(300, len(document["features"])))
                if document["kind"] == "table":
                    at = np.argwhere(np.ones(document["shape"])).astype(np.float64)
                arrays[f"{name}/{prefix}/raw"] = ringfence.load(saved[prefix]).raw(at).copy()
        for path in sorted(run.rglob("*.safetensors")):
            if (inside := path.relative_to(run)).parts[0] not in ("ledger", "episodes"):
                for k, a in safetensors.numpy.load_file(path).items():
                    arrays[f"{name}/{inside.with_suffix('')}:{k}"] = a
        for path in sorted(run.rglob("*.hdf5")):
            with h5py.File(path) as file:
                episodes = sorted(file, key=lambda e: int(e.rpartition("_")[2]))
                for key in ("observations", "actions", "rewards", "infos/features"):
                    content = [np.asarray(file[episode][key]) for episode in episodes]
                    said = b"".join(f"{x.dtype}{x.shape}".encode() + x.tobytes() for x in content)
                    entry["demos"][f"{path.parts[-3]}/{key}"] = hashlib.sha256(said).hexdigest()
    safetensors.numpy.save_file(arrays, out / f"{line}.safetensors")
    (out / f"{line}.json").write_text(json.dumps(entries, indent=1) + "\n")


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(key.key.key, value) of a JSON document; rows of iterations go by their number."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in IGNORED and not key.endswith("sha256"):
                yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        for n, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{inner.get('i', n)}")
    else:
        nothing = isinstance(value, list) and value and all(v is None for v in value)
        yield path, None if nothing else value


def read(folder: Path, line: str) -> dict[str, Entry]:
    """The entries of a line by run, each with its arrays, c_1 .. c_N first."""
    if not (folder / f"{line}.safetensors").is_file():
        return {}
    entries: dict[str, Entry] = json.loads((folder / f"{line}.json").read_bytes())
    arrays = safetensors.numpy.load_file(folder / f"{line}.safetensors")
    for name, entry in entries.items():
        own = {k.removeprefix(f"{name}/"): a for k, a in arrays.items() if k.startswith(f"{name}/")}
        entry["arrays"] = dict(sorted(own.items(), key=lambda e: (not e[0].endswith("/raw"), e[0])))
        numbers = {k: None if v == [] else v for k, v in entry["numbers"].items()}
        if line == "ant-maze":  # where the experts' cost was that under the updated constraint
            updated = {k: v for k, v in numbers.items() if "expert_updated_cost" in k}
            numbers |= {k.replace("_updated", ""): v for k, v in updated.items()}
        entry["numbers"] = numbers
        for pattern, old in RENAMED:
            for part in ("numbers", "arrays"):
                entry[part] = {re.sub(pattern, old, k): v for k, v in entry[part].items()}
    return entries


def differences(old: Entry, new: Entry) -> Iterator[str]:
    """In words: how it ended, c_1 .. c_N and other arrays, the demonstrations, all numbers."""
    for key in ("code", "constraints"):
        if old[key] != new[key]:
            yield f"{key}: {old[key]} {old['said']} != {new[key]} {new['said']}"
    for key, x in old["arrays"].items():
        y = new["arrays"].get(key)
        if y is None and key.endswith("/raw"):
            yield f"{key}: missing"
        elif y is not None and (x.shape, x.dtype) != (y.shape, y.dtype):
            yield f"{key}: {x.dtype}{x.shape} != {y.dtype}{y.shape}"
        elif y is not None and x.tobytes() != y.tobytes():
            pairs = enumerate(zip(x.flat, y.flat, strict=True))
            n, a, b = next((n, a, b) for n, (a, b) in pairs if a.tobytes() != b.tobytes())
            yield f"{key}[{n}]: {a!r} != {b!r}"
    for part in ("demos", "numbers", "words"):
        for key in {**old[part], **new[part]}:
            a, b = old[part].get(key), new[part].get(key)
            must = part == "demos" or key == "selected"
            if key in old[part] and key in new[part]:
                must = part != "words" or key.rpartition(".")[2] in STRICT_WORDS
            if must and a != b and json.dumps(a) != json.dumps(b):  # the latter for NaN
                if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
                    n = next(n for n in range(len(a)) if json.dumps(a[n]) != json.dumps(b[n]))
                    key, a, b = f"{key}[{n}]", a[n], b[n]
                yield f"{part} {key}: {a!r:.160} != {b!r:.160}"


def counts(old: Entry, new: Entry) -> str:
    """How much was compared, and what only one of the two has."""
    said = [f"exit {old['code']}: {old['said']:.60} || {new['said']:.60}"] if old["code"] else []
    said += [f"{old['constraints']} constraints"] if old["constraints"] else []
    for part in ("numbers", "arrays", "demos"):
        both = old[part].keys() & new[part].keys()
        said += [f"{len(both)} {part}"] if both else []
        for side, own in (("old", old[part]), ("new", new[part])):
            alone = [k for k in own if k not in both and own[k] is not None]
            said += [f"{len(alone)} only {side} ({', '.join(alone[:3])} ..)"] if alone else []
    return "equal  " + ", ".join(said)


def compare(old_folder: Path, new_folder: Path, lines: list[str]) -> int:
    """One printed line per run; 1 if any differs."""
    code = 0
    for line in lines:
        old, new = read(old_folder, line), read(new_folder, line)
        for name in {**old, **new} or [line]:
            a, b = old.get(name, {}), new.get(name, {})
            found = list(differences(a, b)) if a and b else ["not recorded in both"]
            said = f"DIFFERENT ({len(found)})  {found[0]}" if found else counts(a, b)
            print(f"{name:24} {said}")
            code = 1 if found else code
    return code


def main(arguments: list[str]) -> int:
    """The command; "keep" is for `record` only."""
    if arguments[:1] == ["keep"]:
        keep(Path(arguments[1]), arguments[2])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="do", required=True)
    make = commands.add_parser("record", help="play, and keep what is to be compared")
    for word in ("--ringfence", "--out"):
        make.add_argument(word, type=Path, required=True)
    make.add_argument("--dialect", choices=["old", "new"], required=True)
    make.add_argument("--also", default="", help="words for every learn, such as '--workers 2'")
    check = commands.add_parser("compare", help="exits 1 on any difference")
    for word in ("old", "new"):
        check.add_argument(word, type=Path)
    lines = list(dict.fromkeys(name.partition("/")[0] for name in table(PLAYS)))
    for sub in (make, check):
        sub.add_argument("--only", choices=lines, nargs="+", default=lines, metavar="LINE")
    options = parser.parse_args(arguments)
    if options.do == "compare":
        return compare(options.old, options.new, options.only)
    recorder = Recorder(options.ringfence, options.dialect, options.out, options.also)
    for line in options.only:
        recorder.record(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
