"""The string formats an API server checks, those that a field of this field's CRDs can name."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime

_DATE_TIME = re.compile(
    r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$", re.ASCII
)
_DURATION = re.compile(r"^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)$", re.ASCII)
_UUID = re.compile(r"^[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$")


def _date_time(text: str) -> bool:
    if not _DATE_TIME.match(text):
        return False
    return _parses(lambda value: datetime.fromisoformat(value[:19].upper()), text)


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


STRING_FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "date-time": (_date_time, "a time such as 2026-01-31T12:00:00Z"),
    "date": (lambda text: _parses(date.fromisoformat, text), "a date such as 2026-01-31"),
    "duration": (lambda text: bool(_DURATION.match(text)), "a duration such as 1h30m"),
    "byte": (_byte, "base64"),
    "uuid": (lambda text: bool(_UUID.match(text)), "a UUID"),
    "ipv4": (lambda text: _parses(ipaddress.IPv4Address, text), "an IPv4 address"),
    "ipv6": (lambda text: _parses(ipaddress.IPv6Address, text), "an IPv6 address"),
    "cidr": (lambda text: "/" in text and _parses(ipaddress.ip_interface, text), "a CIDR block"),
}

INTEGER_BITS = {"int32": 31, "int64": 63}
