"""`python -m bittrue` is the command `bittrue`."""

from .cli import main

if __name__ == "__main__":
    main()
