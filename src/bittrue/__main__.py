"""`python -m bittrue` is the command `bittrue`."""

import sys


def main() -> None:
    """The command; also while it is being imported, Ctrl-C ends it without a traceback."""
    try:
        from .cli import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
