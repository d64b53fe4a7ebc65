"""Oddities of the file that the reader accepted."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """One finding per note of the reader."""
    for note in subject.file.notes:
        place, _, message = note.partition(": ")
        yield RULE.finding(message or note, place=place if message else "")


RULE = Rule(
    code="BT101",
    name="reader-notes",
    severity="note",
    what="The file follows its format to the letter: nothing had to be put right while it was read.",
    why="Another reader may put it right in another way, or refuse the file.",
    enforced="Depends on the oddity; the note says what bittrue did about it. Where a runtime refuses the file for it, "
    "another rule says so.",
    fix="Write the file again with a current converter.",
    source="The readers of bittrue, which check every offset, index, size and type of a file before they use it (run).",
    find=find,
)
