"""A folder of results: parts in Parquet, each written whole, what was asked for, and a summary.

``evaluation.json`` says what is evaluated: model, data, recipe, arithmetics, shard. ``rows/part-000000000.parquet`` and
so on hold rows, named by how many rows stand before them; ``summary.json`` is written when all samples are done. A run
that is ended in between goes on behind the last part.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelFormatError
from ..files import read_file, write_bytes, write_text
from ..report.result import plain
from .arrow import parquet
from .rows import Row
from .sources.places import is_address
from .subjects import all_names
from .tasks import Answer, Task, find_task

FORMAT = "bittrue-evaluation-1"
# A part has at most so many rows.
PART_ROWS = 4096
ASKED, SUMMARY, ROWS = "evaluation.json", "summary.json", "rows"
# Columns of text that every row has, called like its attributes.
_TEXTS = ("id", "source", "input", "code", "error")
# Columns that every arithmetic has, beside those of the task.
_COMMON = {"margin": "double", "digests": "list<string>"}


def folder_on_disk(given: str | os.PathLike[str]) -> Path:
    """The path of a folder of results.

    Raises:
        InputError: it is an address of another file system.
    """
    if is_address(os.fspath(given)):
        raise InputError(
            "BT-EVALUATE-FOLDER",
            "results are written on this machine, and this is an address",
            place=os.fspath(given),
            advice="name a folder here, and copy it when the evaluation has ended",
        )
    return Path(given)


class Folder:
    """Results on disk.

    Args:
        path: the folder, made when something is written.
        asked: what is evaluated, as plain data.
        task: the question; it says which columns there are.
        resume: whether to go on where an earlier run ended.

    Raises:
        InputError: it holds results already (without `resume`), or those of another evaluation.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any], task: Task, *, resume: bool = False) -> None:
        self.path = path
        self.task = task
        self.asked = json.loads(json.dumps(asked))
        self._arrow, self._parquet = parquet()
        self._columns = {name: _kind(self._arrow, text) for name, text in {**task.columns, **_COMMON}.items()}
        self._classes: list[str] = self.asked["data"]["classes"]
        place = path / ASKED
        if place.exists() or self.parts():
            if not resume:
                raise InputError(
                    "BT-EVALUATE-FOLDER",
                    "the folder holds results already",
                    place=str(path),
                    advice="--resume goes on with them; or name another folder",
                )
            before = _read_asked(place)
            if names := differing(before, self.asked):
                raise InputError(
                    "BT-EVALUATE-FOLDER",
                    f"the results in it are of another evaluation: {', '.join(names)} differ",
                    place=str(path),
                    advice="give the same arguments as before, or name another folder",
                )

    def begin(self) -> None:
        """Write what is evaluated, before the first part."""
        (self.path / ROWS).mkdir(parents=True, exist_ok=True)
        if not (self.path / ASKED).exists():
            write_text(self.path / ASKED, json.dumps(self.asked, indent=2) + "\n")

    def parts(self) -> list[Path]:
        """Parts in the order of their samples."""
        return sorted((self.path / ROWS).glob("part-*.parquet"))

    def samples(self) -> int:
        """How many samples all shards have together."""
        samples, limit = self.asked["data"]["samples"], self.asked["limit"]
        return int(samples if limit is None else min(limit, samples))

    def positions(self) -> range:
        """Positions of the samples that are asked for."""
        index, count = self.asked["shard"]
        return range(index - 1, self.samples(), count)

    def count(self) -> int:
        """How many samples are done.

        Raises:
            ModelFormatError: a part is damaged.
        """
        found = 0
        for path in self.parts():
            try:
                found += self._parquet.read_metadata(io.BytesIO(read_file(path))).num_rows
            except (self._arrow.ArrowException, ValueError) as error:
                raise _no_part(path, error) from None
        return found

    def table(self, rows: Sequence[Row]) -> Any:
        """Rows as an Arrow table."""
        pa = self._arrow
        columns: dict[str, Any] = {
            "position": pa.array([row.position for row in rows], pa.int64()),
            "label": pa.array([json.dumps(row.label) for row in rows], pa.string()),
        }
        for name in _TEXTS:
            columns[name] = pa.array([getattr(row, name) for row in rows], pa.string())
        for name in all_names(self.asked):
            answers = [row.answers.get(name) for row in rows]
            for field, kind in self._columns.items():
                values = [None if answer is None else _field(answer, field) for answer in answers]
                columns[f"{name}:{field}"] = pa.array(values, kind)
            if self._classes and self._columns["prediction"] == pa.int64():
                columns[f"{name}:class"] = pa.array([self._class(answer) for answer in answers], pa.string())
        return pa.table(columns)

    def write_part(self, first: int, tables: Sequence[Any]) -> None:
        """One part, whole or not at all; `first` rows stand before it."""
        buffer = io.BytesIO()
        self._parquet.write_table(self._arrow.concat_tables(tables), buffer, compression="zstd")
        write_bytes(self.path / ROWS / _name(first), buffer.getvalue())

    def _class(self, answer: Answer | None) -> str | None:
        known = answer is not None and 0 <= answer.prediction < len(self._classes)
        return self._classes[answer.prediction] if answer is not None and known else None

    def rows(self) -> Iterator[Row]:
        """Rows of all samples that are done, in the order of `positions`.

        Raises:
            ModelFormatError: a part is damaged or missing.
        """
        count = 0
        positions = self.positions()
        for path in self.parts():
            if path.name != _name(count):
                raise ModelFormatError(
                    "BT-EVALUATE-PART", f"'{_name(count)}' should come before it and is missing", place=str(path)
                )
            for row in self._rows(path):
                if count >= len(positions) or row.position != positions[count]:
                    raise ModelFormatError(
                        "BT-EVALUATE-PART",
                        f"the sample at position {row.position} does not belong here",
                        place=str(path),
                    )
                count += 1
                yield row

    def _rows(self, path: Path) -> Iterator[Row]:
        try:
            table = self._parquet.read_table(io.BytesIO(read_file(path))).to_pylist()
            for line in table:
                answers = {}
                for name in all_names(self.asked):
                    fields = {field: line[f"{name}:{field}"] for field in self._columns}
                    if fields["digests"] is not None:
                        prediction, margin, digests = (fields.pop(key) for key in ("prediction", "margin", "digests"))
                        answers[name] = Answer(prediction, margin, fields, tuple(digests))
                texts = {name: str(line[name]) for name in _TEXTS}
                yield Row(line["position"], label=json.loads(line["label"]), answers=answers, **texts)
        except (self._arrow.ArrowException, KeyError, TypeError, ValueError) as error:
            raise _no_part(path, error) from None

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary."""
        write_text(self.path / SUMMARY, json.dumps(plain(summary), indent=2, allow_nan=False) + "\n")


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """In what two evaluations differ; how the user names the same files, and notes on them, do not count."""
    return [name for name in {**one, **two} if name not in ("given", "notes") and one.get(name) != two.get(name)]


def stored(path: Path, task: Task | None = None) -> Folder:
    """The results that a folder holds.

    Args:
        path: the folder.
        task: the question, where it may be one's own.

    Raises:
        InputError: their task is neither this one nor among those of bittrue.
        ModelFormatError: it holds none.
    """
    asked = _read_asked(path / ASKED)
    data, shard, numerics = asked.get("data"), asked.get("shard"), asked.get("numerics")
    if (
        asked.get("format") != FORMAT
        or not isinstance(data, dict)
        or not isinstance(data.get("samples"), int)
        or not isinstance(data.get("classes"), list)
        or not isinstance(asked.get("limit", ""), int | None)
        or not (isinstance(shard, list) and [type(one) for one in shard] == [int, int] and 1 <= shard[0] <= shard[1])
        or not isinstance(asked["against"], dict)
        or not (isinstance(numerics, list) and numerics and all(isinstance(name, str) for name in numerics))
    ):
        raise ModelFormatError("BT-EVALUATE-FOLDER", "no evaluation that this version knows", place=str(path / ASKED))
    if task is None or task.name != asked.get("task"):
        recipe = asked.get("recipe")
        keys = recipe.get("task") if isinstance(recipe, dict) else None
        task = find_task(str(asked.get("task")), keys if isinstance(keys, dict) else None)
    return Folder(path, asked, task, resume=True)


def _read_asked(path: Path) -> dict[str, Any]:
    # Results of versions that knew no real runtimes do not say that they have none.
    return {"against": {}, **read_json(path)}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that an evaluation wrote.

    Raises:
        ModelFormatError: it is none.
    """
    try:
        found = json.loads(read_file(path))
    except (OSError, ValueError) as error:
        raise ModelFormatError("BT-EVALUATE-FOLDER", f"no evaluation: {error}", place=str(path)) from None
    if not isinstance(found, dict):
        raise ModelFormatError("BT-EVALUATE-FOLDER", "no evaluation: expected a JSON object", place=str(path))
    return found


def _no_part(path: Path, error: Exception) -> ModelFormatError:
    return ModelFormatError("BT-EVALUATE-PART", f"no part of an evaluation: {error}", place=str(path))


def _name(first: int) -> str:
    return f"part-{first:09d}.parquet"


def _field(answer: Answer, name: str) -> Any:
    return answer.details[name] if name in answer.details else getattr(answer, name)


def _kind(arrow: Any, text: str) -> Any:
    """An Arrow type from how it is written."""
    if text.startswith("list<"):
        return arrow.list_(_kind(arrow, text[5:-1]))
    return arrow.type_for_alias(text)
