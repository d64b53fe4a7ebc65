"""Kinds of commands and options on top of click: grouped help, default commands, near names for misspelt ones."""

from __future__ import annotations

from typing import Any

import click

from ..errors import InputError
from ..names import near


class Choice(click.Choice):
    """A choice among names: a misspelt one is answered with those that are spelt alike, not with all that there are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        close = [] if value in self.choices else near(str(value), map(str, self.choices))
        if close:
            self.fail(f"'{value}': did you mean {' or '.join(map(repr, close))}?", param, ctx)
        return super().convert(value, param, ctx)


class Group(click.Group):
    """Commands: a misspelt one is answered with those that are spelt alike."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = [] if self.get_command(ctx, args[0]) else near(args[0], self.list_commands(ctx))
        if close and not args[0].startswith("-"):
            meant = " or ".join(f"`{ctx.command_path} {name}`" for name in close)
            ctx.fail(f"No such command '{args[0]}'. Did you mean {meant}?")
        return super().resolve_command(ctx, args)


class GroupedOption(click.Option):
    """An option that `GroupedCommand` lists under a title of its own."""

    def __init__(self, *arguments: Any, group: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command with many options: those that several commands share stand apart, after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        # Only --help is left: it need not come first.
        if len(groups["Options"]) == 1:
            groups["Options"] = groups.pop("Options")
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class DeviceCommand(GroupedCommand):
    """A command that takes a DEVICE: its help lists what can be written for one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Not at the top: most commands have no device.
        from ..conformance.devices.opening import GROUP, SPECS

        rows = []
        for spec in SPECS:
            options = f"; options: ?{'=, &'.join(spec.options)}=" if spec.options else ""
            rows.append((spec.form, f"{spec.help}{options}"))
        rows.append(("NAME", f"a device of an installed package: its entry point in the group {GROUP}"))
        with formatter.section("DEVICE is one of"):
            formatter.write_dl(rows)
        super().format_options(ctx, formatter)


class DefaultGroup(Group):
    """A group whose first command needs no name: ``bittrue conform DEVICE`` beside ``bittrue conform verify FILE``.

    Its help shows the options of that command as well.

    Attributes:
        default: the command that takes the words when the first one names no command.
        first_words: what to say when there are no words at all.
    """

    default: str
    first_words: str

    def __init__(self, *arguments: Any, default: str, first_words: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.default = default
        self.first_words = first_words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            raise click.UsageError(self.first_words, ctx)
        if args[0] not in self.commands and args[0] not in ctx.help_option_names:
            ctx.meta[__name__] = near(args[0], self.commands, 1)
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        close = ctx.meta.get(__name__)
        try:
            return super().invoke(ctx)
        except InputError as error:
            if not close:
                raise
            advice = f"did you mean `{ctx.command_path} {close[0]}`?"
            raise InputError(error.code, error.message, place=error.place, advice=advice) from None
        except click.UsageError as error:
            if not close:
                raise
            message = f"{error.format_message()} Did you mean `{ctx.command_path} {close[0]}`?"
            raise click.UsageError(message, error.ctx) from None

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = self.commands[self.default].collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces))
        for name in self.commands:
            if name != self.default:
                pieces = self.commands[name].collect_usage_pieces(ctx)
                formatter.write_usage(f"{ctx.command_path} {name}", " ".join(pieces), prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands[self.default].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
