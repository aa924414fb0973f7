"""Whom a network's address is counted as, where callers without a key have so many requests."""

from __future__ import annotations

import ipaddress

__all__ = ["caller", "is_near"]


def caller(address: str) -> str:
    """The one who has an address: of IPv6 its first 64 bits, since one connection has all the rest.

    Counted by single addresses, whoever has a connection would have as many requests as they like,
    and would fill the table of those that are known.

    Examples
    --------
    >>> caller("2001:db8:1:2:aaaa::7"), caller("2001:db8:1:2::8"), caller("::ffff:192.0.2.7")
    ('2001:db8:1:2::/64', '2001:db8:1:2::/64', '192.0.2.7')
    >>> caller("192.0.2.7"), caller("")
    ('192.0.2.7', '')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), 64), strict=False))


def is_near(address: str) -> bool:
    """Whether an address is of this machine itself.

    Examples
    --------
    >>> is_near("127.0.0.1"), is_near("::1"), is_near("192.0.2.7"), is_near("")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
