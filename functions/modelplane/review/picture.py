"""A fleet's graph as SVG: columns from left to right, clusters as frames around what runs on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from modelplane.review.fleet import CACHE, CACHE_REPLICA, DEPLOYMENT, ENDPOINT, REPLICA, SERVICE
from modelplane.review.graph import Graph, Node
from modelplane.sim.world import Ref

_WIDTH, _HEIGHT, _GAP, _COLUMN = 260, 56, 16, 400
_MARGIN, _HEAD, _PAD = 20, 46, 24
_LETTERS = 34
_COLOURS = {
    SERVICE[1]: "#e3f2fd",
    DEPLOYMENT[1]: "#ede7f6",
    CACHE[1]: "#fff3e0",
    ENDPOINT[1]: "#e3f2fd",
    REPLICA[1]: "#e8f5e9",
    CACHE_REPLICA[1]: "#fff8e1",
}
# One column asks, the other runs: with a third in between lines would run behind its boxes.
_LEFT = {SERVICE[1]: 0, DEPLOYMENT[1]: 0, CACHE[1]: 0}
_RIGHT = 1
_STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#1b1b1f}"
    ".k{font-size:11px;fill:#555}.n{font-size:12px;font-weight:600}.m{font-size:11px;fill:#555}"
    ".e{stroke:#8a8a94;fill:none;stroke-width:1.4}"
)


@dataclass(frozen=True, slots=True)
class _Spot:
    x: int
    y: int


def svg(found: Graph) -> str:
    """Return the picture as an SVG document; a dashed border is what is not ready."""
    spots: dict[Ref, _Spot] = {}
    frames: list[tuple[Node | None, int, int]] = []
    y = _MARGIN
    known = {x.ref.name for x in found.clusters}
    for cluster in found.clusters:
        inside = [n for n in found.nodes if n.cluster == cluster.ref.name]
        frames.append((cluster, y, _HEAD + max(1, len(inside)) * (_HEIGHT + _GAP) + _PAD))
        _stack(inside, _RIGHT, y + _HEAD, spots)
        y += frames[-1][2] + _GAP
    loose = [n for n in found.nodes if n.cluster not in known and _LEFT.get(n.kind, _RIGHT) == _RIGHT]
    y = _stack(loose, _RIGHT, y, spots)
    asking = [n for n in found.nodes if n.ref not in spots]
    bottom = max(y, _stack(asking, 0, _MARGIN + _HEAD, spots))
    width, height = _MARGIN * 2 + _RIGHT * _COLUMN + _WIDTH + 2 * _PAD, bottom + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="Fleet">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#8a8a94"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(_frame(cluster, top, tall) for cluster, top, tall in frames if cluster is not None),
        *(_line(spots[e.start], spots[e.end], e.label) for e in found.edges),
        *(_box(node, spots[node.ref]) for node in found.nodes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _stack(nodes: Sequence[Node], column: int, y: int, spots: dict[Ref, _Spot]) -> int:
    for node in nodes:
        spots[node.ref] = _Spot(_MARGIN + column * _COLUMN + (_PAD if column == _RIGHT else 0), y)
        y += _HEIGHT + _GAP
    return y


def _frame(cluster: Node, y: int, height: int) -> str:
    x, width = _MARGIN + _RIGHT * _COLUMN, _WIDTH + 2 * _PAD
    return (
        f'<g><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="#f7f7fa" '
        f'stroke="#b9b9c3"{_dashed(cluster)}/>'
        f'<text class="n" x="{x + _PAD}" y="{y + 20}">{_cut(f"{cluster.kind} {cluster.name}")}</text>'
        f'<text class="m" x="{x + _PAD}" y="{y + 36}">{_cut(cluster.note)}</text></g>'
    )


def _box(node: Node, spot: _Spot) -> str:
    x, y = spot.x, spot.y
    return (
        f"<g><title>{escape(f'{node.kind} {node.name}')}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{_COLOURS[node.kind]}" stroke="#6b6b76"{_dashed(node)}/>'
        f'<text class="k" x="{x + 10}" y="{y + 16}">{node.kind}</text>'
        f'<text class="n" x="{x + 10}" y="{y + 33}">{_cut(node.name)}</text>'
        f'<text class="m" x="{x + 10}" y="{y + 48}">{_cut(node.note)}</text></g>'
    )


def _dashed(node: Node) -> str:
    return "" if node.ready else ' stroke-dasharray="5 4"'


def _line(start: _Spot, end: _Spot, label: str) -> str:
    if start.x == end.x:
        # Beside the boxes of one column, from the right edge back to it.
        x, y1, y2 = start.x + _WIDTH, start.y + _HEIGHT // 2, end.y + _HEIGHT // 2
        return (
            f'<path class="e" marker-end="url(#a)" d="M{x} {y1} C{x + 26} {y1} {x + 26} {y2} {x + 2} {y2}"/>'
        )
    x1, y1 = start.x + _WIDTH, start.y + _HEIGHT // 2
    x2, y2 = end.x - 2, end.y + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return (
        f'<path class="e" marker-end="url(#a)" d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"/>'
        f'<text class="m" x="{x1 + 8}" y="{y1 - 5}">{label}</text>'
    )


def _cut(text: str) -> str:
    return escape(text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…")
