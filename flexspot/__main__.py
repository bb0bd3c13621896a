"""The `flexspot` command, also as `python -m flexspot`."""

from infra.cli.app import main

if __name__ == "__main__":
    main()
