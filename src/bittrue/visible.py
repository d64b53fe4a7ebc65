"""Text of unknown origin made fit to be shown: names, paths and messages may hold anything."""

from __future__ import annotations


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text in which every character that cannot be seen, or acts on a terminal, is an escape.

    That is whatever `str.isprintable` is false for: control characters (C0, DEL, C1), format characters (the ones that
    turn the direction of writing, that join, or that are invisible), other spaces and line ends than the plain ones,
    lone surrogates (bytes of a path that are not UTF-8), and code points without a character. XML 1.0 can hold what is
    left.

    Args:
        text: any string; a backslash in it stays as it is.
        lines: whether line feeds and tabs stay, for text of several lines.

    >>> visible("a\x1b[31mb\n\u202ec\udcff")
    'a\\x1b[31mb\\n\\u202ec\\udcff'
    >>> visible("a\nb", lines=True)
    'a\nb'
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def visible_ascii(text: str) -> str:
    r"""The same in ASCII: for comments of programs, and for readers that know nothing else.

    >>> visible_ascii("Größe\n")
    'Gr\\xf6\\xdfe\\n'
    """
    return visible(text).encode("ascii", "backslashreplace").decode()
