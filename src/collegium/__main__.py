"""``python -m collegium``: the command line, where the script ``collegium`` is not on the path."""

from collegium.cli.main import script

if __name__ == "__main__":
    script()
