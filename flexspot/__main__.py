"""The `flexspot` command, also as `python -m flexspot`."""

import sys


def main() -> None:
    """Runs the command line. `flexspot lint` alone loads the linter's commands alone, and starts in two thirds of the time."""
    if sys.argv[1:2] == ["lint"]:
        from infra.cli.lint_app import main as run  # noqa: PLC0415
    else:
        from infra.cli.app import main as run  # noqa: PLC0415
    run()


if __name__ == "__main__":
    main()
