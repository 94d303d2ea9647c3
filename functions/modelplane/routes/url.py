"""Reading an endpoint's URL: strictly, since its host becomes an address that a gateway connects to."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class UrlError(ValueError):
    """Why a URL cannot be an endpoint; never repeats the URL, which may hold a credential."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an endpoint is.

    Attributes:
        scheme: `http` or `https`.
        host: an IP address, or a host name in lower case.
        port: the URL's, else the scheme's.
        address_type: as an EndpointSlice spells it: `IPv4`, `IPv6` or `FQDN`.
    """

    scheme: str
    host: str
    port: int
    address_type: str


def parse(url: str) -> Origin:
    """Return where the URL points to; its path and query play no part.

    Raises:
        UrlError: for anything that is not a plain http or https URL with a reachable host.
    """
    # urlsplit drops line breaks and tabs without a word.
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise UrlError("holds a space or a control character: remove it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UrlError("has no readable host and port: write scheme://host:port") from None
    if parts.scheme not in _PORTS:
        raise UrlError("must start with http:// or https://")
    if "@" in parts.netloc:
        raise UrlError("carries a user or password: remove it and name a Secret in spec.auth")
    if not host:
        raise UrlError("has no host: write scheme://host:port")
    if port == 0:
        raise UrlError("has port 0: write a port from 1 to 65535")
    address, kind = _address(host)
    return Origin(parts.scheme, address, port or _PORTS[parts.scheme], kind)


def bracketed(address: str) -> str:
    """Return an address as it stands in a URL: IPv6 in brackets, anything else as it is."""
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


def _address(host: str) -> tuple[str, str]:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host_name(host), "FQDN"
    if getattr(address, "scope_id", None):
        raise UrlError("has an IPv6 zone: write an address that every node reaches")
    # What the API server refuses in an EndpointSlice (kubernetes, pkg/apis/core/validation,
    # ValidateEndpointIP).
    if address.is_unspecified or address.is_loopback or address.is_link_local or address.is_multicast:
        raise UrlError("has an address that only one machine reaches: write one that every node reaches")
    return str(address), f"IPv{address.version}"


def host_name(host: str) -> str:
    """Return a fully qualified host name in lower case.

    Raises:
        UrlError: for anything else.
    """
    name = host.removesuffix(".").lower()
    labels = name.split(".")
    if not name.isascii():
        raise UrlError("has a host outside ASCII: write its xn-- form")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlError("has a host that is neither an IP address nor a host name")
    # An EndpointSlice takes a fully qualified name only (kubernetes, IsFullyQualifiedDomainName).
    if len(labels) < 2:
        raise UrlError(
            "has a host without a dot: write its full name, such as name.namespace.svc.cluster.local"
        )
    if labels[-1].isdigit():
        raise UrlError("has a host that looks like an IP address and is none")
    return name
