"""A `collegium` for shells that starts in a moment: a fork of a process that has imported all.

Every command is a process of its own, as ever, with its own arguments, folder, variables, and streams; only
the second that imports take is spent once instead of for each of a hundred commands.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

_SHIM = """#!{python} -ISs
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({place!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    sys.exit(int(server.recv(16) or b"70"))
"""


def start() -> Path:
    """Begin to serve; returns the folder with the command, for the front of PATH."""
    folder = Path(tempfile.mkdtemp(prefix="collegium-"))
    place = str(folder / "socket")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen(64)
    shim = folder / "collegium"
    shim.write_text(_SHIM.format(python=sys.executable, place=place), "utf-8")
    shim.chmod(0o755)
    server = os.fork()
    if not server:
        _serve(listening)
    listening.close()

    def end() -> None:
        os.kill(server, 9)
        os.waitpid(server, 0)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


def _serve(listening: socket.socket) -> NoReturn:
    import collegium.cli.main
    import collegium.study.runner  # noqa: F401

    parent = os.getppid()
    listening.settimeout(5)
    while os.getppid() == parent:
        try:
            one, _ = listening.accept()
        except TimeoutError:
            continue
        one.setblocking(True)
        threading.Thread(target=_run, args=(one,), daemon=True).start()
    os._exit(0)


def _run(one: socket.socket) -> None:
    with one:
        size, streams, _, _ = socket.recv_fds(one, 8, 3)
        content = b""
        while len(content) < int.from_bytes(size, "big"):
            content += one.recv(1 << 16)
        command = os.fork()
        if not command:
            _become(*json.loads(content), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(command, 0)
        one.sendall(str(os.waitstatus_to_exitcode(status) & 255).encode())


def _become(
    arguments: list[str], folder: str, variables: dict[str, str], streams: list[int]
) -> None:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8")
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = ["collegium", *arguments]
        from collegium.cli.console import err, out
        from collegium.cli.main import main

        out.file, err.file = sys.stdout, sys.stderr
        out.width = err.width = int(variables.get("COLUMNS", "80"))
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
