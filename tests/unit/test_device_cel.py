"""Device selectors: the outcome Kubernetes' DRA has for each expression."""

from __future__ import annotations

import pytest

from modelplane.schedule import cel, cel_text, regex
from modelplane.schedule.devices import Shape, node

H200 = {
    "name": "gpu",
    "driver": "gpu.nvidia.com",
    "deviceClassName": "gpu.nvidia.com",
    "count": 8.0,
    "attributes": {
        "architecture": {"string": "Hopper"},
        "cuda": {"version": "9.0.0"},
        "index": {"int": 3.0},
        "mig": {"bool": True},
        "one": {"int": 1},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
        "broken": {"version": "9"},
    },
    "capacity": {"memory": {"value": "143771Mi"}, "broken": {"value": "1K"}},
}
A, C = 'device.attributes["gpu.nvidia.com"]', 'device.capacity["gpu.nvidia.com"]'

TRUE = [
    ('device.driver == "gpu.nvidia.com"', "the driver"),
    (f'{C}.memory.compareTo(quantity("120Gi")) >= 0', "an amount"),
    (f'{C}.memory == quantity("143771Mi")', "equality by value"),
    (f'{C}.memory.isGreaterThan(quantity("1")) && {C}.memory.isLessThan(quantity("1Ti"))', "both orders"),
    (f'{C}.memory.sub(quantity("1Mi")).add(1048576).compareTo({C}.memory) == 0', "arithmetic"),
    ('sign(quantity("1")) == 1 && quantity("1000m").isInteger()', "the quantity family"),
    ('quantity("2").asInteger() == 2 && quantity("500m").asApproximateFloat() == 0.5', "its numbers"),
    ('isQuantity("1Gi") && !isQuantity("1K")', "a test of quantities"),
    (f'{A}.architecture == "Hopper"', "a string"),
    (f'{A}.architecture.lowerAscii().startsWith("hop")', "string functions"),
    (f"{A}.index == 3 && {A}.index % 2 == 1", "an int is an int, whatever the wire made of it"),
    (f"{A}.mig", "a bool"),
    (f"type({A}.one) == int && type({A}.mig) == bool", "1 and true are not one value"),
    (f'{A}.cuda.isGreaterThan(semver("8.9.0"))', "a version"),
    (f'{A}.cuda.major() == 9 && semver("v1.2", true).minor() == 2', "parts, and normalizing"),
    ('isSemver("1.2.3") && !isSemver("1.2") && isSemver("1.2", true)', "a test of versions"),
    ('device.attributes["resource.kubernetes.io"].pcieRoot == "pci0"', "a name with a domain of its own"),
    ('!has(device.attributes["other.io"].x)', "an unknown domain is an empty map"),
    ('!("other.io" in device.attributes)', "which is not there all the same"),
    ('device.attributes[?"other.io"].?x.orValue("none") == "none"', "optional syntax"),
    (f'{A}.?nothing.orValue(7) == 7', "an optional id"),
    ("device.attributes[device.driver].index == 3", "a computed domain"),
    (f'cel.bind(a, {A}, a.mig && a.index == 3)', "bind"),
    ("cel.bind(d, device, d.driver != '')", "the device as a value"),
    ("has(device.driver) && has(device.attributes)", "has() of its fields"),
    (f'{A}.exists(name, name == "cuda")', "a macro over a map"),
    ("[1, 2, 3].sum() == 6 && [1, 2].isSorted()", "list functions"),
    ("sets.contains([1, 2], [1])", "set functions"),
    (f'{A}.architecture.find("o.p") == "opp"', "regular expressions"),
    ("device.allowMultipleAllocations == false", "a field of newer Kubernetes"),
    ('true || device.attributes["gpu.nvidia.com"].nothing == 1', "an error that does not decide"),
    ('"device.attributes[" != ""  // device.attributes[', "text and comments are not looked into"),
]  # fmt: skip

NOT_TRUE = [
    (f"{A}.nothing == 1", "an unknown id is an error, for this device only"),
    ('device.attributes["other.io"].x == 1', "an id of an unknown domain too"),
    (f"{A}.broken == semver('9.0.0')", "a version no driver could report is not there"),
    (f"sign({C}.broken) == 1", "nor is such an amount"),
    (f"{A}.architecture", "a value that is no bool is not true"),
    (f"{A}.index", "not even a number"),
    (f'{A}.cuda.compareTo(quantity("1")) >= 0', "a version against a quantity"),
    (f'{A}.index.compareTo(quantity("1")) >= 0', "an int against a quantity"),
    ('quantity("1K") == quantity("1")', "a quantity that is none"),
    ("1 / 0 == 1", "a division by zero"),
]  # fmt: skip

REFUSED = [
    ("device.driver ==", "Syntax error", "no expression"),
    ("", "Syntax error", "nothing at all"),
    ("device.memory == 1", "undeclared reference to 'device.memory'", "a field a device does not have"),
    ("devices.driver == ''", "undeclared reference to 'devices.driver'", "another variable"),
    (f"{C}.memory > 1", "no matching overload", "a quantity compared as a number"),
    (f'{C}.memory.compareTo(semver("1.0.0")) > 0', "no matching overload", "a quantity with a version"),
    ("quantity(1) == quantity(1)", "no matching overload", "a quantity of a number"),
    ("1 + 1", "gives int, not bool", "a number"),
    (f"{C}.memory", "gives kubernetes.quantity, not bool", "an amount"),
    ("has(device.driver) == 'x'", "no matching overload", "has() gives a bool"),
    ("isGreaterThan(quantity('2'), quantity('1'))", "undeclared reference", "members are not functions"),
    (f"{A}.all(a, {A}.all(b, {A}.all(d, {A}.all(e, true))))", "costs too much", "nested macros"),
    ("'" + "x" * 10241 + "' == ''", "10240 are admitted", "an endless text"),
    ("'" + "é" * 5120 + "' == ''", "has 10248 bytes; 10240 are admitted", "counted in bytes"),
]  # fmt: skip


def shape() -> Shape:
    return node([H200]).devices[0].shape


@pytest.mark.parametrize(("text", "reason"), TRUE, ids=[row[1] for row in TRUE])
def test_a_selector_is_true_of_the_device(text: str, reason: str) -> None:
    found = cel.selector(text)
    assert found.error == "", reason
    assert found.matches(shape()), reason


@pytest.mark.parametrize(("text", "reason"), NOT_TRUE, ids=[row[1] for row in NOT_TRUE])
def test_an_error_or_another_value_is_not_true(text: str, reason: str) -> None:
    found = cel.selector(text)
    assert found.error == "", reason
    assert not found.matches(shape()), reason


@pytest.mark.parametrize(("text", "says", "reason"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_cannot_be_run_says_why(text: str, says: str, reason: str) -> None:
    found = cel.selector(text)
    assert says in found.error, reason
    assert "\n" not in found.error
    assert not found.matches(shape()), reason


X = '"' + "x" * 3000 + '"'
EXPENSIVE = [
    ('"x"' + '.replace("x", "xxxxxxxxxx")' * 12 + ' == ""', "replacements that lengthen each other"),
    ('"x"' + '.replace//\n("x", "xxxxxxxxxx")' * 12 + ' == ""', "even with comments between"),
    ('"x"' + '.replace("", "xx")' * 40 + ' == ""', "between all letters"),
    ('"x"' + f'.replace("x", {A}.architecture)' * 6 + ' == ""', "by a text only the device knows"),
    ("[1, 2, 3, 4, 5, 6, 7, 8]" + ".map(x, [1, 2, 3, 4, 5, 6, 7, 8]).flatten()" * 9 + ".size() > 0", "lists"),
    (f'{X}.split("").all(a, {X}.split("").all(b, a == b))', "a walk over letters in another one"),
    ("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))", "ranges in ranges"),
    ("cel.bind(a, [1,2,3,4,5,6,7,8], cel.bind(b, a+a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b+b, "
     "c.all(x, c.all(y, true)))))", "walks over a list that bindings made long"),
    (f"{A}.all//\n(a, {A}.all//\n(b, {A}.all//\n(c, {A}.all//\n(d, {A}.all(e, true)))))", "nested loops"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), EXPENSIVE, ids=[row[1] for row in EXPENSIVE])
def test_what_multiplies_is_refused_before_it_runs(text: str, reason: str) -> None:
    assert "costs too much" in cel.selector(text).error, reason


CHEAP = [
    (f"{A}.exists(a, {A}.exists(b, a == b) || {A}.exists(b, a != b) || {A}.all(b, a == b))", "loops beside"),
    (f'{A}.architecture.replace(" ", "-").replace("_", "-").replace(".", "-") == "Hopper"', "no growth"),
    (" || ".join(f'{A}.architecture.matches("H{n}")' for n in range(20)) + " || true", "many terms"),
    ("lists.range(1000).all(a, a >= 0)", "one range"),
    ('["b", "a"].sort()[0] == "a" && [1, 1].distinct().reverse().slice(0, 1) == [1]', "list functions"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), CHEAP, ids=[row[1] for row in CHEAP])
def test_what_only_adds_up_is_run(text: str, reason: str) -> None:
    found = cel.selector(text)
    assert found.error == "", reason
    assert found.matches(shape()), reason


ENDLESS = [
    ("(a+)+$", "a repeated group"), ("a?" * 40 + "a" * 40, "optional letters"), ("(a|a)" * 40, "choices"),
    ("a*a*a*a*b", "repetitions in a row"), ("((a{1000}){1000}){1000}", "counted ones"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "reason"), ENDLESS, ids=[row[1] for row in ENDLESS])
def test_a_pattern_that_could_run_for_ever_is_an_error(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"not supported|too many ways"):
        regex.find("a" * 5000 + "!", pattern)
    assert not cel.selector(f'("{"a" * 5000}!").find("{pattern}") != "x"').matches(shape()), reason


@pytest.mark.parametrize(
    "text", ["(" * 3000 + "true", "!" * 9000 + "x", '"\ud800" == ""', "__attributes(1)", "1" * 5000]
)
def test_no_text_raises(text: str) -> None:
    assert cel.selector(text).error != ""


def test_doubling_bindings_are_refused_before_they_fill_memory() -> None:
    text = '"x"'
    for n in range(40):
        text = f"cel.bind(v{n}, {text}, v{n} + v{n} + v{n})"
    assert "costs too much" in cel.selector(f"size({text}) > 0").error


def test_a_selector_is_compiled_once_and_run_once_per_shape() -> None:
    first = cel.selector('device.driver == "once"')
    assert cel.selector('device.driver == "once"') is first
    assert [first.matches(s) for s in (Shape("once"), Shape("once"), Shape("other"))] == [True, True, False]
    assert len(first._known) == 2


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ('device.attributes["a"].b', '__attributes(device.attributes, "a").b'),
        ('device.capacity[?"a"].b', 'optional.of(__capacity(device.capacity, "a")).b'),
        ("device.attributes[device.attributes['x'].y].z",
         "__attributes(device.attributes, __attributes(device.attributes, 'x').y).z"),
        ("other.device.attributes['a']", "other.device.attributes['a']"),
        ("device.attributes[", "device.attributes["),
        ("'device.attributes[1]'", "'device.attributes[1]'"),
        ("device.attributes['a]'] == ''", "__attributes(device.attributes, 'a]') == ''"),
    ],
)  # fmt: skip
def test_only_an_index_on_the_device_gets_the_default(text: str, becomes: str) -> None:
    assert cel_text.with_domains(text) == becomes


@pytest.mark.parametrize("junk", [None, 7, "x", {}, [None], ["x"], [{"count": "many"}], [{"attributes": []}]])
def test_devices_that_cannot_be_read_are_none_and_never_raise(junk: object) -> None:
    found = node(junk)
    assert not any(found.counts)
