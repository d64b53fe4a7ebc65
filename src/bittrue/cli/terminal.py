"""Where everything that the command line prints goes through: text is shown, never obeyed.

Names come from files, and paths from whoever named them. A `Terminal` makes control characters visible in whatever it
prints, tables included, and takes square brackets for what they are; `plain.say` does so for lines without styles.
Nothing else in this package writes to standard output or standard error; a test holds that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.text import Span, Text

from ..visible import visible


class Terminal(Console):
    """A console for text of unknown origin.

    A `str` is one line: its line ends are made visible, too, so that a name cannot forge a line of output. Lines of our
    own that belong together, in a table's cell for instance, are a `rich.text.Text`; markup is read only where
    ``markup=True`` is given, and stands for fixed words then.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **more: Any) -> None:
        """A word with escapes that is longer than the terminal leaves its line whole: what follows a line end in a name
        could begin the next one where it is folded.
        """
        texts = [one.plain if isinstance(one, Text) else visible(one) for one in objects if isinstance(one, str | Text)]
        if soft_wrap is None and len(texts) == len(objects):
            soft_wrap = any("\\" in word and len(word) > self.width for text in texts for word in text.split())
        super().print(*objects, soft_wrap=soft_wrap, **more)

    def render_str(self, text: str, *, markup: bool | None = None, **more: Any) -> Text:
        return super().render_str(visible(text, lines=bool(markup)), markup=markup, **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and not renderable.plain.replace("\n", "").isprintable():
            renderable = _visible_text(renderable)
        return super().render(renderable, options)


def one_line(*parts: str | tuple[str, str]) -> Text:
    """A line of parts with styles of their own, as `rich.text.Text.assemble` takes them; line ends are made visible."""
    return Text.assemble(*(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts))


def _visible_text(text: Text) -> Text:
    """The same with its styles on the same characters, one by one as they may be longer now."""
    shown = [visible(letter, lines=True) for letter in text.plain]
    at = [0]
    for part in shown:
        at.append(at[-1] + len(part))
    last = len(shown)
    copy = text.blank_copy("".join(shown))
    copy.spans = [Span(at[min(span.start, last)], at[min(span.end, last)], span.style) for span in text.spans]
    return copy


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A line on standard error while someone is waiting there. It does not move: animations take processor time."""
    out = Terminal(stderr=True)
    if out.is_terminal:
        out.print(f"{text} ...", end="", soft_wrap=True)
    try:
        yield
    finally:
        out.control(Control((ControlType.CARRIAGE_RETURN,), (ControlType.ERASE_IN_LINE, 2)))
