"""``python -m rankwright``: the command line."""

from rankwright.cli.main import run

if __name__ == "__main__":
    run()
