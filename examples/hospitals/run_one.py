"""Run one hospital's studies, in its folder, one after the other: as `collegium run answers.toml` does.

One process for all of them: most of the time of a short command is that of its imports.
"""

from __future__ import annotations

import sys

from collegium.cli.main import main

if __name__ == "__main__":
    for study in sys.argv[1:]:
        sys.argv = ["collegium", "run", f"{study}.toml", "--quiet"]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
