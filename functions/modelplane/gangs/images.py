"""Images that Modelplane itself runs beside engines, as the cluster's stack release pins them."""

from dataclasses import dataclass

from modelplane.facts import versions

PICKER_PIN = "endpoint-picker"
PROXY_PIN = "disaggregation-proxy"


@dataclass(frozen=True, slots=True)
class EdgeImages:
    """Full image references.

    Attributes:
        picker: the endpoint picker.
        proxy: the proxy before decode engines.
    """

    picker: str
    proxy: str


def edge_images(release: str, mirror: str) -> EdgeImages:
    """Return the images of a stack release; of the newest where it is not named or not known here.

    A mirror stands in for the source registry, the first part of an image's name; empty for none.
    """
    known = versions.releases()
    pins = known[release] if release in known else versions.newest()
    return EdgeImages(_image(pins.pin(PICKER_PIN), mirror), _image(pins.pin(PROXY_PIN), mirror))


def _image(pin: versions.Pin, mirror: str) -> str:
    image = f"{mirror}/{pin.image.partition('/')[2]}" if mirror else pin.image
    return f"{image}:{pin.version}"
