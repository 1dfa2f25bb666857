"""Letters come out in the order in which they were put in, once."""

from __future__ import annotations

from ringfence.runs.ray_mailbox import Mailbox


def test_letters_are_taken_in_order_and_once() -> None:
    box = Mailbox()
    assert box.take() == []
    box.put(b"one")
    box.put(b"two")
    assert box.take() == [b"one", b"two"]
    assert box.take() == []
