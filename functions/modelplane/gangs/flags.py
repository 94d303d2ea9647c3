"""What an engine's own command line says about it: its port and the size of a key-value block.

A guess by nature, taken only where the spec does not say: user text may be anything, so nothing here raises,
and what cannot be read is as good as not said.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.api.model_replica import Engine, ModelReplicaSpec
from modelplane.core import paths

PORT_FLAGS = ("--port",)
BLOCK_FLAGS = ("--block-size", "--page-size")
DEFAULT_BLOCK_SIZE = 16
# Engines by the picker's words for them (llm-d-router v0.10.0, core-metrics-extractor).
VLLM = "vllm"
SGLANG = "sglang"
TRTLLM = "trtllm-serve"

_COMMAND_END = re.compile(r"&&|\|\||[;|&\n]")
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# `ray start --port` is the port of the gang's head, never that of the API.
_NOT_ENGINES = {"ray"}


def engine_port(engine: Engine) -> int:
    """Return the port the engine's API listens on: the spec's, else its flag's, else the contract's."""
    if engine.port is not None:
        return engine.port
    default = c.DECODE_PORT if engine.phase == c.DECODE else c.ENGINE_PORT
    return _flag(engine, PORT_FLAGS, 65535) or default


def block_size(spec: ModelReplicaSpec) -> int:
    """Return the tokens in a key-value block: the spec's, else the serving engine's flag, else vLLM's 16."""
    if spec.serving.kv_block_size is not None:
        return spec.serving.kv_block_size
    return _flag(spec.phase(c.DECODE) or spec.engines[0], BLOCK_FLAGS, 65536) or DEFAULT_BLOCK_SIZE


def engine_type(engine: Engine) -> str:
    """Return which engine serves: what the user's label says, else a word of its command or its image."""
    if said := engine.serving.template.metadata.labels.get(c.LLMD_ENGINE_LABEL):
        return said
    container = _engine_container(engine)
    for command in _commands(container):
        # A module's package is as good as a program's name: `python3 -m sglang.launch_server`.
        modules = (word for flag, word in itertools.pairwise(command) if flag == "-m")
        for name in (_program(command), *modules):
            word = name.strip("\"'").rsplit("/", 1)[-1].partition(".")[0]
            if word in (VLLM, SGLANG, TRTLLM):
                return word
    image = paths.text(container, "image").partition("@")[0].rsplit("/", 1)[-1].partition(":")[0]
    return SGLANG if SGLANG in image else VLLM


def _engine_container(engine: Engine) -> Mapping[str, Any]:
    containers = engine.serving.template.spec.containers
    return next(x for x in containers if x.get("name") == c.ENGINE_CONTAINER)


def _flag(engine: Engine, flags: Iterable[str], most: int) -> int | None:
    """Return the last whole number given to one of the flags, as an argument parser takes it."""
    found = None
    for command in _commands(_engine_container(engine)):
        words = [word.strip("\"'") for word in command]
        for i, word in enumerate(words):
            for flag in flags:
                if word.startswith(f"{flag}="):
                    value = word.removeprefix(f"{flag}=").strip("\"'")
                elif word == flag and i + 1 < len(words):
                    value = words[i + 1]
                else:
                    continue
                if value.isascii() and value.isdigit() and 1 <= int(value[:6]) <= most and len(value) < 7:
                    found = int(value)
    return found


def _commands(container: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the words of each simple command: the container's own, and those of a shell text inside it."""
    own: list[str] = []
    for word in (*paths.items(container, "command"), *paths.items(container, "args")):
        if not isinstance(word, str):
            continue
        if not re.search(r"\s", word.strip()):
            own.append(word.strip())
            continue
        for text in _COMMAND_END.split(word.replace("\\\n", " ")):
            words = _WORD.findall(text)
            if _program(words).rsplit("/", 1)[-1] not in _NOT_ENGINES:
                yield words
    if own and _program(own).rsplit("/", 1)[-1] not in _NOT_ENGINES:
        yield own


def _program(words: list[str]) -> str:
    return next((w for w in words if w != "exec" and not _ASSIGNMENT.match(w)), "")
