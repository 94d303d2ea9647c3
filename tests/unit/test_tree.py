"""The tree: one line per object, and the one reason that matters."""

from __future__ import annotations

import pytest

from builders import core, worlds
from modelplane import contracts as c
from modelplane.core import Composed, Condition, Manifest
from modelplane.render import tree
from modelplane.sim.play import one_pass
from modelplane.sim.reconcile import Reply
from modelplane.sim.world import World, ref

OBJECT = worlds.carrying("it", worlds.remote("ConfigMap"))
CHART = {"name": "grove-charts", "version": "1.2"}
RELEASE = core.thing("it", "team", "Release", spec={"forProvider": {"chart": CHART}})


def drawn(world: World, function: worlds.Function, passes: int = 1) -> list[str]:
    for _ in range(passes):
        done = one_pass(world, worlds.KINDS, function, worlds.admit)
    return [str(line) for line in tree.lines(done, world.children)]


@pytest.mark.parametrize(
    ("made", "line", "reason"),
    [
        (OBJECT, "└─ a: Object with ConfigMap default/it", "an Object by what it carries"),
        ({**RELEASE, "apiVersion": c.HELM_API}, "└─ a: Release grove-charts 1.2", "a chart by its version"),
        (core.thing("it"), "└─ a: Thing team/it", "anything else by kind and name"),
    ],
)
def test_an_object_is_called_what_a_person_calls_it(made: Manifest, line: str, reason: str) -> None:
    assert drawn(worlds.world(), worlds.answering({"a": made}))[1].startswith(line), reason


def test_a_composite_names_the_first_condition_in_its_own_order() -> None:
    """Alphabetical order would give the result before the cause."""
    causes = [
        Condition("Placed", True, "Done"),
        Condition("Known", False, "Missing", "no such class"),
        Condition("Built", False, "Waiting", "not known yet"),
    ]
    (line,) = drawn(worlds.world(), worlds.answering({}, said=False, conditions=causes))
    assert line == "Widget team/one  [not ready] Known Missing: no such class"


def test_without_a_condition_of_its_own_it_names_what_is_unready() -> None:
    lines = drawn(worlds.world(), worlds.answering({"a": core.thing("it")}))
    assert lines[0] == "Widget team/one  [not ready] Unready resources: a"
    assert lines[1] == "└─ a: Thing team/it  [not ready] created"


def test_what_is_held_back_stands_with_its_reason() -> None:
    lines = drawn(worlds.world(), worlds.answering({"b": core.thing("it")}, held_back={"a": "waiting for b"}))
    assert lines[1:] == ["├─ a  [not yet] waiting for b", "└─ b: Thing team/it  [not ready] created"]


def test_a_failed_composite_says_why_and_a_refused_child_too() -> None:
    (line,) = drawn(worlds.world(), lambda _: Reply(fatal="boom"))
    assert line == "Widget team/one  [not ready] boom"
    bad = core.thing("it", refuse=["spec.x: no"])
    world = worlds.world(core.thing("it", "team"))
    world.adopt(worlds.OWNER, "a", ref(core.thing("it", "team")))
    lines = drawn(world, worlds.answering({"a": bad}))
    assert lines[1] == "└─ a: Thing team/it  [not ready] Thing team/it refused: spec.x: no"


def test_a_leaf_says_what_its_provider_says() -> None:
    world = worlds.world()
    lines = drawn(world, worlds.answering({"a": OBJECT}))
    assert lines[1].endswith('[not ready] cannot get provider config: ProviderConfig "config" not found')


def test_what_is_being_deleted_says_what_holds_it() -> None:
    world = worlds.world(worlds.config())
    drawn(world, worlds.answering({"a": OBJECT}))
    world.remove(ref(worlds.config()))
    lines = drawn(world, worlds.answering({}))
    assert "[not ready] being deleted: cannot get provider config" in lines[1]


def test_standing_usages_are_one_line_and_come_last() -> None:
    one, two = core.thing("one", "team"), core.thing("two", "team")
    guard = {**core.usage(one, two), "metadata": {"name": "guard"}}
    wanted = {"a": one, "b": two, "usage-a-by-b": guard}
    lines = drawn(worlds.world(), worlds.answering(wanted, ready=list(wanted)), passes=2)
    assert lines[1:] == [
        "├─ a: Thing team/one  [ready]",
        "├─ b: Thing team/two  [ready]",
        "└─ 1 Usages that keep the deletion order  [ready]",
    ]


def test_a_composed_composite_is_no_root_and_its_branch_is_indented() -> None:
    child = core.widget("two")

    def function(inputs: worlds.Inputs) -> Reply:
        made = {"child": child} if inputs.name == "one" else {"leaf": core.thing("it")}
        answer = worlds.Answer(resources={k: Composed(m, True) for k, m in made.items()})
        return Reply((), answer)

    lines = drawn(worlds.world(), function, passes=2)
    assert [line.partition("  [")[0] for line in lines] == [
        "Widget team/one",
        "└─ child: Widget team/two",
        "   └─ leaf: Thing team/it",
    ]
