"""Do private records leave this machine unencrypted?"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterable

from collegium.errors import PrivacyWarning


def warn_if_unencrypted(engine: str, hosts: Iterable[str], encrypted: bool) -> None:
    """Warn of a cluster on other machines whose traffic is not encrypted.

    ``engine``: what to call the cluster.
    ``encrypted``: is its traffic encrypted?

    Examples
    --------
    >>> warn_if_unencrypted("Dask", ["127.0.0.1"], encrypted=False)
    """
    if encrypted:
        return
    elsewhere = sorted({host for host in hosts if not is_here(host)})
    if elsewhere:
        more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
        warnings.warn(
            f"private records travel unencrypted to the {engine} cluster ({elsewhere[0]}{more}): whoever "
            "reads this network reads them; docs/large-data.md says how to switch TLS on",
            PrivacyWarning,
            stacklevel=2,
        )


def is_here(host: str) -> bool:
    """Tell whether an address belongs to this machine: nothing else can be bound here.

    Examples
    --------
    >>> is_here("127.0.0.1"), is_here("192.0.2.1")
    (True, False)
    """
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True
