"""`python -m revarb` and the `revarb` command."""

from revarb.runtime.interrupts import exit_on_interrupt


def main() -> None:
    """Import the command line, and run it."""
    with exit_on_interrupt():
        from revarb import cli
    cli.main()


if __name__ == "__main__":
    main()
