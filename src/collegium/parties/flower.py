"""Flower carries the files of parties: a relay on the SuperLink, an agent at each SuperNode, nothing else.

Only this module needs the package ``flwr`` (extra ``flower``). Records, masks and noise stay with Collegium:
what Flower sees are the signed files that anybody may read. A SuperNode is started with
``--node-config 'folder="PATH"'``, the folder that its party takes for the shared one; the relay keeps its
own copy for as long as it runs. ``examples/flower`` has the commands.
"""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from collegium.errors import InputError
from collegium.parties.synchronising import lacking, names_in, taken

client = ClientApp()  # each on a line of its own: Flower looks for them in the text
server = ServerApp()
_FILES, _HAS = "files", "has"
_PAUSE_S = 0.5
_LOG = logging.getLogger(__name__)


@client.query()
def bring(message: Message, context: Context) -> Message:
    """Take what is new, and give what the relay lacks."""
    folder = Path(str(context.node_config["folder"]))
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: give the SuperNode the one that its party shares")
    record = message.content.config_records[_FILES]
    taken(folder, _files_in(record))
    has = record[_HAS]
    assert isinstance(has, list)
    return Message(_record(folder, {str(one) for one in has}), reply_to=message)


@server.main()
def relay(grid: Grid, context: Context) -> None:
    """Bring each party what the others have posted, for as long as the run's ``seconds`` (default: a day)."""
    end = time.monotonic() + float(context.run_config.get("seconds", 86_400))  # type: ignore[arg-type]
    has: dict[int, set[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        while time.monotonic() < end:
            moved = 0
            messages = [
                Message(_record(folder, has.get(node, set()), names_in(folder)), node, "query")
                for node in grid.get_node_ids()
            ]
            for reply in grid.send_and_receive(messages, timeout=60.0):
                if reply.has_error():
                    continue  # it says so where it runs, and is asked again
                record = reply.content.config_records[_FILES]
                named = record[_HAS]
                assert isinstance(named, list)
                has[reply.metadata.src_node_id] = {str(one) for one in named}
                try:
                    moved += taken(folder, _files_in(record))
                except InputError as problem:  # of this party; the others go on
                    _LOG.warning("SuperNode %s: %s", reply.metadata.src_node_id, problem)
            if not moved:
                time.sleep(_PAUSE_S)


def _record(folder: Path, known: set[str], has: list[str] | None = None) -> RecordDict:
    files = lacking(folder, known)
    content = {
        _HAS: names_in(folder) if has is None else has,
        "names": list(files),
        "contents": list(files.values()),
    }
    return RecordDict({_FILES: ConfigRecord(content)})  # type: ignore[arg-type]


def _files_in(record: ConfigRecord) -> dict[str, bytes]:
    names, contents = record["names"], record["contents"]
    assert isinstance(names, list) and isinstance(contents, list)
    return {str(name): bytes(one) for name, one in zip(names, contents, strict=True)}  # type: ignore[arg-type]
