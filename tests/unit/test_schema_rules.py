"""CEL rules as an API server runs them, and what is told where one cannot run."""

import pytest

from modelplane.api import schema_cel
from modelplane.api.schema import Problem, Schema

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def ruled(rule, schema=None, **extra):
    return {**(schema or STRING), "x-kubernetes-validations": [{"rule": rule, "message": "refused", **extra}]}


def obj(**properties):
    return {"type": "object", "properties": properties}


def fields(**properties):
    return obj(spec=obj(**properties))


def over(rule, **properties):
    return obj(spec=ruled(rule, obj(**properties)))


BYTES, NUMBER = {"type": "string", "format": "byte"}, {"type": "number"}
SET = {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}
LIST_MAP = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
POOLS = {**LIST_MAP, "items": {**ruled("self.size >= oldSelf.size", obj(name=STRING, size=INTEGER))}}
ATOMIC = {"type": "array", "items": ruled("self == oldSelf", obj(name=STRING))}

HOLDS = [
    ("has() of an absent field", over("!has(self.b)", a=STRING, b=STRING), {"a": "x"}),
    ("has() of a field that is null", over("has(self.b) && self.b == null", b={**STRING, "nullable": True}),
     {"b": None}),
    ("&& guards an absent field", over("has(self.b) && self.b == 'x' || self.a == 'x'", a=STRING, b=STRING),
     {"a": "x"}),
    ("a YAML integer in a number field is a double", over("type(self.a) == double", a=NUMBER), {"a": 1}),
    ("a whole float in an integer field is an int", over("type(self.a) == int", a=INTEGER), {"a": 1.0}),
    ("int and double compare", over("self.a < 1.5 && self.b < 2", a=INTEGER, b=NUMBER), {"a": 1, "b": 1.5}),
    ("an int-or-string is either", over("type(self.a) == int ? self.a == 80 : false",
                                        a={"x-kubernetes-int-or-string": True}), {"a": 80}),
    ("bytes come decoded", over("self.a == b'hi'", a=BYTES), {"a": "aGk="}),
    ("a dash is escaped", over("self.a__dash__b == 'x'", **{"a-b": STRING}), {"a-b": "x"}),
    ("a keyword is escaped", over("self.__namespace__ == 'x'", namespace=STRING), {"namespace": "x"}),
    ("underscores, dot and slash are escaped",
     over("self.a__underscores__b == 'x' && self.c__dot__d__slash__e == 'y'",
                                                    **{"a__b": STRING, "c.d/e": STRING}),
     {"a__b": "x", "c.d/e": "y"}),
    ("keys of a map are not escaped",
     over("'a-b' in self.m", m={"type": "object", "additionalProperties": STRING}),
     {"m": {"a-b": "x"}}),
    ("macros over lists", over("self.l.all(x, x.startsWith('a')) && self.l.exists_one(x, x == 'ab')",
                               l={"type": "array", "items": STRING}), {"l": ["ab", "ac"]}),
    ("macros over maps see keys", over("self.m.all(k, self.m[k] == k)",
                                       m={"type": "object", "additionalProperties": STRING}),
     {"m": {"x": "x"}}),
    ("strings",
     over("self.a.lowerAscii().split(',')[1].matches('^b$') && self.a.replace('A', '').size() == 2",
                     a=STRING), {"a": "A,B"}),
    ("quantities compare by value",
     over("quantity(self.a) == quantity('1024Mi') && quantity(self.a).isLessThan("
                                         "quantity('1.1G'))", a=STRING), {"a": "1Gi"}),
    ("lists know sum and order", over("self.l.sum() == 3 && self.l.isSorted()",
                                      l={"type": "array", "items": INTEGER}), {"l": [1, 2]}),
    ("durations", over("duration(self.a) > duration('59s')", a=STRING), {"a": "1m"}),
    ("optional fields", over("self.?a.orValue('x') == 'x'", a=STRING), {}),
    ("a rule of an absent field does not run", fields(a=ruled("false")), {}),
    ("a rule of a null does not run", fields(a={**ruled("false"), "nullable": True}), {"a": None}),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "openapi", "spec"), HOLDS, ids=[row[0] for row in HOLDS])
def test_rule_holds(reason, openapi, spec):
    schema = Schema(openapi)
    assert schema.check({"spec": spec}) == [], reason
    assert schema.unsupported == []


FAILS = [
    ("the message", fields(a=ruled("self == 'x'")), {"a": "y"}, "spec.a", "refused"),
    ("each item by itself", fields(l={"type": "array", "items": ruled("self == 'x'")}), {"l": ["x", "y"]},
     "spec.l[1]", "refused"),
    ("each value of a map", fields(m={"type": "object", "additionalProperties": ruled("self == 'x'")}),
     {"m": {"a.b": "y"}}, 'spec.m["a.b"]', "refused"),
    ("without a message, the rule",
     fields(a={**STRING, "x-kubernetes-validations": [{"rule": " self == 'x' "}]}),
     {"a": "y"}, "spec.a", "failed rule: self == 'x'"),
    ("messageExpression", fields(a=ruled("self == 'x'", messageExpression="'is %s'.format([self])")),
     {"a": "y"},
     "spec.a", "is y"),
    ("a messageExpression that fails gives way to the message",
     fields(a=ruled("self == 'x'", messageExpression="string(1 / int(self))")), {"a": "0"}, "spec.a",
     "refused"),
    ("a messageExpression of two lines does too", fields(a=ruled("self == 'x'", messageExpression=r"'a\nb'")),
     {"a": "y"}, "spec.a", "refused"),
    ("fieldPath", obj(spec=ruled("has(self.a)", obj(a=STRING, b=STRING), fieldPath=".a")), {"b": "y"},
     "spec.a",
     "refused"),
    ("a rule that cannot be evaluated refuses, as on the server", over("self.b == 'x'", a=STRING, b=STRING),
     {"a": "x"}, "spec",
     'refused (the rule could not be evaluated: Key not found in map : "b")'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "openapi", "spec", "path", "message"), FAILS, ids=[row[0] for row in FAILS]
)
def test_rule_fails(reason, openapi, spec, path, message):
    assert Schema(openapi).check({"spec": spec}) == [Problem(path, message)], reason


TRANSITIONS = [
    ("not run for a new object", fields(a=ruled("self == oldSelf")), None, {"a": "x"}, []),
    ("run for an update", fields(a=ruled("self == oldSelf")), {"a": "x"}, {"a": "y"}, ["spec.a"]),
    ("not run for a field that is new", fields(a=ruled("self == oldSelf")), {}, {"a": "y"}, []),
    ("items of a list map find their old self by key, not by place", fields(pools=POOLS),
     {"pools": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]},
     {"pools": [{"name": "c", "size": 0}, {"name": "b", "size": 1}, {"name": "a", "size": 1}]},
     ["spec.pools[1]"]),
    ("items of an atomic list have no old self", fields(items=ATOMIC), {"items": [{"name": "a"}]},
     {"items": [{"name": "b"}]}, []),
    ("values of a map find theirs by key",
     fields(m={"type": "object", "additionalProperties": ruled("self == oldSelf")}),
     {"m": {"x": "1", "y": "1"}},
     {"m": {"y": "2", "z": "3"}}, ["spec.m.y"]),
    ("optionalOldSelf runs without an old object",
     fields(a=ruled("oldSelf.hasValue()", optionalOldSelf=True)), None,
     {"a": "x"}, ["spec.a"]),
    ("optionalOldSelf gives the old value",
     fields(a=ruled("oldSelf.orValue('') == 'x'", optionalOldSelf=True)),
     {"a": "x"}, {"a": "y"}, []),
    ("oldSelf within a string is no transition", fields(a=ruled("self != 'oldSelf'")), None, {"a": "oldSelf"},
     ["spec.a"]),
    ("sets are equal in any order", over("self.s == oldSelf.s", s=SET), {"s": ["a", "b"]},
     {"s": ["b", "a"]}, []),
    ("sets with other items are not", over("self.s == oldSelf.s", s=SET), {"s": ["a", "b"]},
     {"s": ["b", "c"]},
     ["spec"]),
    ("lists are not equal in another order",
     over("self.s == oldSelf.s", s={"type": "array", "items": STRING}),
     {"s": ["a", "b"]}, {"s": ["b", "a"]}, ["spec"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "openapi", "old", "new", "paths"), TRANSITIONS, ids=[row[0] for row in TRANSITIONS]
)
def test_transition_rule(reason, openapi, old, new, paths):
    problems = Schema(openapi).check({"spec": new}, None if old is None else {"spec": old})
    assert [problem.path for problem in problems] == paths, reason


ORDER = [
    ("a wrong type stops the rules", {"a": 1, "b": "x"}, ["must be a string, is an integer"]),
    ("a pattern does not", {"a": "y", "b": "1"}, ['"1" does not match ^[a-z]$', "refused"]),
]


@pytest.mark.parametrize(("reason", "spec", "messages"), ORDER, ids=[row[0] for row in ORDER])
def test_rules_run_only_over_a_sound_structure(reason, spec, messages):
    schema = Schema(fields(a=ruled("self == 'x'"), b={**STRING, "pattern": "^[a-z]$"}))
    assert [problem.message for problem in schema.check({"spec": spec})] == messages, reason


def test_rules_of_the_object_see_name_and_kind():
    schema = Schema(ruled("self.metadata.name.size() < 4 && self.kind == 'K'", obj()))
    assert schema.check({"kind": "K", "metadata": {"name": "abc", "labels": {}}}) == []
    assert [problem.path for problem in schema.check({"kind": "K", "metadata": {"name": "abcd"}})] == [""]


UNSUPPORTED = [
    ("an unknown function", fields(a=ruled("self.made('up')")), "spec.a", "self.made('up')"),
    (
        "a rule that gives no bool",
        fields(l={"type": "array", "items": ruled("'x' + 'y'")}),
        "spec.l[*]",
        "'x' + 'y'",
    ),
    ("a broken messageExpression", fields(a=ruled("true", messageExpression="1")), "spec.a", "1"),
    ("a pattern that RE2 refuses", fields(a={**STRING, "pattern": "(?=x)"}), "spec.a", "(?=x)"),
]


@pytest.mark.parametrize(
    ("reason", "openapi", "path", "text"), UNSUPPORTED, ids=[row[0] for row in UNSUPPORTED]
)
def test_names_what_does_not_compile(reason, openapi, path, text):
    found = Schema(openapi).unsupported
    assert [(where, what) for where, what, _ in found] == [(path, text)], reason
    assert found[0][2], "the error says why"


def test_a_rule_that_does_not_compile_is_left_to_the_list_of_unsupported_ones():
    schema = Schema(fields(a=ruled("self.made('up')"), b=ruled("self == 'x'")))
    assert schema.check({"spec": {"a": "x", "b": "y"}}) == [Problem("spec.b", "refused")]


QUANTITIES = [
    (
        "binary and decimal suffixes",
        "quantity('1Ki').asInteger() == 1024 && quantity('1k').asInteger() == 1000",
        True,
    ),
    ("milli", "quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()", True),
    ("exponent", "quantity('1e3').compareTo(quantity('1k')) == 0", True),
    (
        "one number in two spellings",
        "quantity('1.10') == quantity('1.1') && quantity('1') == quantity('1.0')",
        True,
    ),
    ("arithmetic", "quantity('1').add(quantity('500m')).sub(quantity('2')).sign() == -1", True),
    ("no quantity", "isQuantity('1Kb')", False),
    ("addresses", "isIP('::1') && isCIDR('10.0.0.0/8') && !isIP('10.0.0.256') && !isCIDR('10.0.0.1')", True),
    ("URLs", "isURL('https://a/b') && !isURL('a b')", True),
    (
        "sets",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])",
        True,
    ),
    ("finding", "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']", True),
    ("extremes", "[2, 1].min() == 1 && [2, 1].max() == 2 && !['b', 'a'].isSorted()", True),
]


@pytest.mark.parametrize(("reason", "rule", "value"), QUANTITIES, ids=[row[0] for row in QUANTITIES])
def test_functions_that_kubernetes_adds(reason, rule, value):
    assert schema_cel.program(rule).run(schema_cel.bind("")) == schema_cel.Outcome(value), reason
