"""Between the nodes of a Ray cluster and the driver: an actor, which must start fast."""

from __future__ import annotations


class Mailbox:
    """Between nodes and driver: what is put in is taken out, in order."""

    def __init__(self) -> None:
        self._letters: list[bytes] = []

    def put(self, letter: bytes) -> None:
        self._letters.append(letter)

    def take(self) -> list[bytes]:
        letters, self._letters = self._letters, []
        return letters
