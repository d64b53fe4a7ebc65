"""What every result can do: say in one line what came out, show itself in notebooks, and be written as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_text
from ..visible import visible

# Endings of file names to the modules of this folder that render results.
_RENDERERS = {".html": "html", ".md": "markdown", ".sarif": "sarif", ".xml": "junit"}


def plain(data: Any) -> Any:
    """Plain data as JSON has it.

    Objects stand for dataclasses and mappings, lists for tuples, and ``"nan"``, ``"inf"``, ``"-inf"`` for numbers that
    it lacks.
    """
    if isinstance(data, float):
        return data if math.isfinite(data) else str(data)
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    # Most of what is left are texts and integers; asking for an abstract class takes longest.
    if data is None or isinstance(data, str | int):
        return data
    if hasattr(type(data), "__dataclass_fields__"):
        return {field.name: plain(getattr(data, field.name)) for field in fields(data)}
    return {key: plain(value) for key, value in data.items()} if isinstance(data, Mapping) else data


def rendered(data: Mapping[str, Any], ending: str) -> str:
    """The text of a file with this ending for the plain data of a result."""
    if ending == ".json":
        return json.dumps(data, indent=1, allow_nan=False) + "\n"
    # Jinja2 and Plotly are only needed for pages.
    text: str = import_module(f".{_RENDERERS[ending]}", __package__).render(data)
    return text


class Result:
    """The base of what `check_model`, `compare_models`, `conform` and `identify` return.

    `print(result)` shows a summary, ``repr(result)`` one line; notebooks show the summary as a table.

    Attributes:
        headline: what came out, in one sentence.
        formats: file name endings that `save` knows for this result.
    """

    formats: tuple[str, ...] = (".json", ".html", ".md")

    @property
    def headline(self) -> str:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, the only source of every report."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The same as JSON text, as ``--json`` prints it."""
        return rendered(self.to_dict(), ".json").removesuffix("\n")

    def to_markdown(self) -> str:
        """A short summary, for example for a CI job."""
        return rendered(self.to_dict(), ".md")

    def to_html(self) -> str:
        """One page that works offline, as text. Needs the extra ``report`` (``pip install "bittrue[report]"``)."""
        return rendered(self.to_dict(), ".html")

    def save(self, path: object) -> None:
        """Write the result to `path` (str or PathLike), whose ending chooses the form.

        ``.json`` holds everything (`bittrue report` reads it), ``.html`` is a page, ``.md`` a summary; results of
        `check_model` know ``.sarif`` and ``.xml`` (JUnit), too, those of `conform` ``.xml``.

        Raises:
            InputError: another ending, no such folder, or a package is missing that draws pages.
            OutputError: it cannot be written; a file that was there stays as it was.
        """
        target = Path(str(path))
        ending = target.suffix.lower()
        if ending not in self.formats:
            raise InputError(
                "BT-RESULT-FORMAT",
                f"no form of a result ends with '{ending}'",
                place=str(target),
                advice=f"choose one of {', '.join(self.formats)}",
            )
        write_text(target, rendered(self.to_dict(), ending))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {visible(self.headline)}>"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()
