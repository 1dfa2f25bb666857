"""The process that talks to Ray for a driver, over a wire of bytes.

Ray ends the process that it lives in when its cluster goes away. So it has one of its own, and a
driver whose bridge has ended knows that the cluster is gone, and says how to go on.

    from the driver   common (name, bytes), solve (number, cores, common's name, bytes)
    to the driver     ready or refused, once; nodes; letters (see ray_node.Post); done, lost, failed
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from ringfence.runs import ray_node
from ringfence.runs.backend import pack, unpack
from ringfence.runs.ray_local import OTHER_TOKEN, for_us_alone
from ringfence.runs.ray_mailbox import Mailbox

#: Seconds between two looks at the mailbox and at the cluster's nodes.
LOOK, COUNT = 0.25, 1.0
#: Seconds that a node may take to start a process and to say what it has installed.
FIRST_ANSWER = 180.0
#: Answers that are fetched at once: one that a lost node held back must not hold up the others.
FETCHING = 8
#: Seconds to take leave of the cluster; it notices, too, if nobody does.
FAREWELL = 2.0
TOKEN_ERROR = "AuthenticationError"


def main() -> None:
    """argv: the wire's descriptor, and what is asked for, as JSON."""
    wire, asked = Connection(int(sys.argv[1])), json.loads(sys.argv[2])
    try:
        Bridge(wire, asked).run()
    except (EOFError, BrokenPipeError):  # the driver has ended
        os._exit(0)
    except Exception as problem:  # of Ray's, of any kind: in words
        tell(wire, {"what": "gone", "message": first_line(problem)})
        os._exit(1)


def tell(wire: Connection, head: dict[str, Any], body: bytes = b"") -> None:
    wire.send_bytes(pack({"head": json.dumps(head).encode(), "body": body}))


def heard(wire: Connection) -> tuple[dict[str, Any], bytes]:
    files = unpack(wire.recv_bytes())
    return json.loads(files["head"]), files["body"]


def first_line(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0] if lines else ''}"


def refusal(problem: BaseException) -> str:
    """Why there is no connection, where somebody answers. Ray seldom says that it was the token."""
    if not isinstance(problem, ConnectionError) and type(problem).__name__ != TOKEN_ERROR:
        return first_line(problem)
    said = first_line(problem).partition(". ")[0]
    return (
        f"{said}; if the cluster has a token, it was missing here or wrong: set "
        "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH (docs/many-machines.md)"
    )


class Bridge:
    def __init__(self, wire: Connection, asked: dict[str, Any]) -> None:
        self.wire, self.asked = wire, asked
        self.expected = json.dumps(asked["versions"])
        self.common: dict[str, Any] = {}
        self.numbers: dict[Any, int] = {}
        self.lock, self.speaking = threading.Lock(), threading.Lock()
        self.fetching = ThreadPoolExecutor(FETCHING)
        self.told: dict[str, Any] = {}

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        self.local = self.asked["on"] == "ray" and not is_there()
        if self.local:
            os.environ.pop(OTHER_TOKEN, None)
            os.environ |= for_us_alone(Path(self.asked["home"]))
        import ray  # which reads those variables

        self.ray = ray
        try:
            self.connect()
        except Exception as problem:
            tell(self.wire, {"what": "refused", "message": refusal(problem)})
            return
        self.mailbox = self.open_mailbox()
        wrong = self.looked_at()
        if wrong:
            tell(self.wire, {"what": "refused", "message": wrong})
            ray.shutdown()
            return
        self.solve = ray.remote(max_retries=0)(ray_node.solve)
        self.count()
        tell(self.wire, {"what": "ready"})
        self.watch()

    def connect(self) -> None:
        """To the cluster that is asked for; "ray": to the one that is there, or a new local one."""
        asked, env = self.asked, {"env_vars": self.asked["environment"]}
        if asked["modules"]:
            env["working_dir"] = asked["modules"]
        given = {"runtime_env": env, "log_to_driver": False, "logging_level": "error"}
        if self.local:
            self.ray.init(address="local", include_dashboard=False, **given)
        elif asked["on"] == "ray":
            self.ray.init(**given)
        else:
            self.ray.init(address=asked["on"], **given)

    def looked_at(self) -> str:
        """What is wrong with the nodes that are there, if anything is."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        look = self.ray.remote(max_retries=0, num_cpus=0)(ray_node.look)
        asked = []
        for node in self.nodes():
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked.append((node, look.options(scheduling_strategy=there).remote(self.expected)))
        wrong = []
        for node, ref in asked:
            try:
                wrong.append(self.ray.get(ref, timeout=FIRST_ANSWER).decode())
            except self.ray.exceptions.NodeDiedError:
                continue
            except self.ray.exceptions.RayError as problem:
                mine = self.asked["versions"]["ringfence"]
                wrong.append(
                    f"node {node['NodeManagerHostname']} can't run ringfence "
                    f"({last_line(problem)}): pip install 'ringfence[ray]=={mine}' there"
                )
        return "\n".join(dict.fromkeys(filter(None, wrong)))

    def nodes(self) -> list[dict[str, Any]]:
        return [n for n in self.ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]

    def open_mailbox(self) -> Any:
        """Where this process is, as long as that is there: it must outlive the nodes."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = self.ray.get_runtime_context().get_node_id()
        return (
            self.ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Mailbox)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=True))
            .remote()
        )

    # From the driver

    def listen(self) -> None:
        try:
            while True:
                head, body = heard(self.wire)
                if head["what"] == "common":
                    self.common[head["name"]] = self.ray.put(body)
                elif head["what"] == "forget":
                    self.common.pop(head["name"], None)
                else:
                    self.submit(head, body)
        except (EOFError, OSError):  # the driver has ended, and so does all that it asked for
            threading.Timer(FAREWELL, os._exit, [0]).start()
            if self.told:
                self.ray.shutdown()
            os._exit(0)

    def submit(self, head: dict[str, Any], body: bytes) -> None:
        common, number = self.common[head["common"]], head["number"]
        task = self.solve.options(num_cpus=head["cores"], name=head["task"])
        with self.lock:
            ref = task.remote(self.expected, common, body, number, self.mailbox)
            self.numbers[ref] = number

    # To the driver

    def say(self, head: dict[str, Any], body: bytes = b"") -> None:
        with self.speaking:
            tell(self.wire, head, body)

    def watch(self) -> None:
        counted = 0.0
        while True:
            with self.lock:
                refs = list(self.numbers)
            done: list[Any] = []
            if refs:
                done, _ = self.ray.wait(refs, num_returns=1, timeout=LOOK)
                if done:  # and whatever else is there by now
                    done, _ = self.ray.wait(refs, num_returns=len(refs), timeout=0)
            else:
                time.sleep(LOOK / 10)
            for letter in self.ray.get(self.mailbox.take.remote()):
                self.say({"what": "letter"}, letter)
            for ref in done:  # after its last letter, and not one waiting for the other
                with self.lock:
                    number = self.numbers.pop(ref)
                self.fetching.submit(self.settle, ref, number)
            if time.monotonic() - counted >= COUNT:
                counted = time.monotonic()
                self.count()

    def settle(self, ref: Any, number: int) -> None:
        errors = self.ray.exceptions
        try:
            self.say({"what": "done", "number": number}, self.ray.get(ref))
            return
        except errors.OutOfMemoryError:
            lost = {"what": "lost", "why": "memory"}
        except errors.WorkerCrashedError:
            lost = {"what": "lost", "why": "process"}
        except (errors.NodeDiedError, errors.ObjectLostError):
            lost = {"what": "lost", "why": "node"}
        except errors.RayError as problem:
            lost = {"what": "failed", "why": last_line(problem)}
        self.say({**lost, "number": number})

    def count(self) -> None:
        """Of cores, over the nodes that are there, and of the largest."""
        cores = [float(n["Resources"]["CPU"]) for n in self.nodes()]
        now = {"cores": sum(cores), "largest": max(cores, default=0.0), "nodes": len(cores)}
        if now != self.told:
            self.told = now
            self.say({"what": "nodes", **now})


def is_there() -> bool:
    """Is a cluster named by RAY_ADDRESS, or has this machine one? Ray notes it, and would wait for
    minutes for one that was killed."""
    if os.environ.get("RAY_ADDRESS"):
        return True
    try:
        noted = (Path(gettempdir()) / "ray" / "ray_current_cluster").read_text()
        host, _, port = noted.strip().rpartition(":")
        socket.create_connection((host, int(port)), timeout=1.0).close()
    except (OSError, ValueError):
        return False
    return True


def last_line(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if lines else type(problem).__name__
