package main

import (
	"math/rand"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"gopkg.in/inf.v0"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// run evaluates one expression over texts a and b; nil stands for an error.
type runner struct{ programs map[string]cel.Program }

func newRunner() *runner { return &runner{programs: map[string]cel.Program{}} }

func (r *runner) run(expression, a, b string) any {
	program := r.programs[expression]
	if program == nil {
		base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
		if err != nil {
			fail(err)
		}
		env, err := base.Extend(cel.Variable("a", cel.StringType), cel.Variable("b", cel.StringType))
		if err != nil {
			fail(err)
		}
		ast, issues := env.Compile(expression)
		if issues != nil {
			fail(issues.Err())
		}
		if program, err = env.Program(ast); err != nil {
			fail(err)
		}
		r.programs[expression] = program
	}
	value, _, err := program.Eval(map[string]any{"a": a, "b": b})
	if err != nil {
		return nil
	}
	return plain(value)
}

// plain gives a quantity as its nano units and a version as its text.
func plain(value ref.Val) any {
	if pointer, ok := value.(*apiservercel.Quantity); ok {
		value = *pointer
	}
	switch held := value.(type) {
	case apiservercel.Quantity:
		nano := new(inf.Dec).Mul(held.AsDec(), inf.NewDec(1_000_000_000, 0))
		return new(inf.Dec).Round(nano, 0, inf.RoundExact).String()
	case apiservercel.Semver:
		return held.Version.String()
	}
	if texts, ok := value.Value().([]string); ok {
		return append([]string{}, texts...)
	}
	return value.Value()
}

type row map[string]any

func pick(r *rand.Rand, from ...string) string { return from[r.Intn(len(from))] }

func quantities() []section {
	random := rand.New(rand.NewSource(1))
	texts := []string{
		"", ".", "-", "+", "Gi", "m", "e3", "E", "1E", "1e", "1E3", "1e3", "1e+3", "1e-3", "1e-10", "1E-9", "1K", "1Kib",
		"1,5", " 1", "1 ", "1\n", "0x10", "--1", "+-1", "1_000", "1.2.3", "1.", ".5", "-.5", "+.5Mi", "00", "007", "1i",
		"NaN", "Inf", "1e18", "1e19", "1E18", "1e100", "8Ei", "7Ei", "9Ei", "100Ei", "-8Ei", "-100Ei", "256E", "8192Pi",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"9223372036854775807m", "9223372036854775807n", "0.1n", "-0.1n", "1.0000000001", "-1.0000000001", "999999999n",
		"1000000000n", "1.5Ki", "0.0000000001Gi", "1.0000000009Gi", "1e0", "1e00", "0e5", "0Ei", "0.0", "-0", "12e0",
		"3.14159265358979323846", "100u", "1n", "5u", "1m1", "1mm", "1kk", "1GiGi", "١", "1е3", "1.5e3", "1.5E3", "1.5E",
		"79Gi", "80Gi", "141Gi", "143771Mi", "24576Mi",
	}
	for range 220 {
		digits := pick(random, "0", "1", "9", "12", "500", "0001", "1024", "999999999999", "18446744073709551616")
		fraction := pick(random, "", "", "", ".", ".0", ".5", ".25", ".000000001", ".0000000001", ".999999999999")
		suffix := pick(random, "", "n", "u", "m", "k", "K", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
			"e1", "e-1", "E2", "E-2", "e+2", "e12", "e-12", "ki", "gi", "g")
		texts = append(texts, pick(random, "", "", "", "-", "+")+digits+fraction+suffix)
	}
	r := newRunner()
	var parsed, paired []any
	var good []string
	for _, text := range unique(texts) {
		found := row{"text": text, "nano": r.run("quantity(a)", text, "")}
		if found["nano"] != nil {
			good = append(good, text)
			found["sign"] = r.run("sign(quantity(a))", text, "")
			found["integer"] = r.run("quantity(a).asInteger()", text, "")
			found["is_integer"] = r.run("quantity(a).isInteger()", text, "")
			found["float"] = r.run("quantity(a).asApproximateFloat()", text, "")
		}
		found["is"] = r.run("isQuantity(a)", text, "")
		parsed = append(parsed, found)
	}
	for range 300 {
		a, b := pick(random, good...), pick(random, good...)
		paired = append(paired, row{
			"a": a, "b": b,
			"compare": r.run("quantity(a).compareTo(quantity(b))", a, b),
			"greater": r.run("quantity(a).isGreaterThan(quantity(b))", a, b),
			"less":    r.run("quantity(a).isLessThan(quantity(b))", a, b),
			"equal":   r.run("quantity(a) == quantity(b)", a, b),
			"add":     r.run("quantity(a).add(quantity(b))", a, b),
			"sub":     r.run("quantity(a).sub(quantity(b))", a, b),
		})
	}
	return []section{{name: "parsed", rows: parsed}, {name: "pairs", rows: paired}}
}

func versions() []section {
	random := rand.New(rand.NewSource(2))
	texts := []string{
		"", ".", "1", "1.2", "1.2.3", "v1", "v1.2", "v1.2.3", "V1.2.3", "vv1.2.3", "01.2.3", "1.02.3", "1.2.03", "v01.02.03",
		"1.2.3.4", "1.2.3-", "1.2.3+", "1.2.3-+", "1.2.3-a", "1.2.3-a.b", "1.2.3-a..b", "1.2.3-01", "1.2.3-0", "1.2.3-1.2",
		"1.2.3-a.01", "1.2.3-0a", "1.2.3--", "1.2.3--1", "1.2.3+b", "1.2.3+01", "1.2.3+b..c", "1.2.3-a+b", "1.2.3+b-a",
		"1.2-a", "1-a", "1.2+b", "v1.2-a", "1.2.3 ", " 1.2.3", "1.2.3\n", "1. 2.3", "+1.2.3", "-1.2.3", "1.-2.3", "1.+2.3",
		"a.b.c", "1.2.x", "1..3", "1.2.", ".1.2", "00.0.0", "0.0.0", "18446744073709551615.0.0", "18446744073709551616.0.0",
		"1.2.3-18446744073709551616", "1.2.3-99999999999999999999", "1.2.3-ä", "1.2.3-a_b", "v", "v1.2.3-rc.1+build.5", "1.2.3-٣",
		"000", "01", "01.02", "1.2.3-rc.01", "v00.1", "1.2.003-a", "9.0.0", "8.9.0", "12.4.131", "1.10.0", "1.9.0", "1.2.3-A",
		"1.2.3-aa", "1.2.3-a.1", "1.2.3-a.1.0", "1.2.3-9", "1.2.3-10", "1.2.3-a9", "1.2.3-a10", "9223372036854775807.0.0",
		"9223372036854775808.0.0", "1.2.3-beta.2", "1.2.3-beta.11", "1.2.3-rc", "2.0.0-0", "2.0.0",
	}
	for range 150 {
		number := func() string { return pick(random, "0", "1", "2", "10", "01", "00") }
		parts := []string{number(), number(), number(), number()}[:1+random.Intn(4)]
		text := pick(random, "", "", "", "v") + strings.Join(parts, ".")
		text += pick(random, "", "", "", "-a", "-1", "-a.1", "-01", "-a.b.c", "-0.a") + pick(random, "", "", "", "+b", "+b.1", "+")
		texts = append(texts, text)
	}
	r := newRunner()
	var parsed, paired []any
	var good []string
	for _, text := range unique(texts) {
		found := row{
			"text":       text,
			"strict":     r.run("semver(a)", text, ""),
			"normalized": r.run("semver(a, true)", text, ""),
			"is":         r.run("isSemver(a)", text, ""),
			"is_loose":   r.run("isSemver(a, true)", text, ""),
		}
		if found["strict"] != nil {
			good = append(good, text)
			found["major"] = r.run("semver(a).major()", text, "")
			found["minor"] = r.run("semver(a).minor()", text, "")
			found["patch"] = r.run("semver(a).patch()", text, "")
		}
		parsed = append(parsed, found)
	}
	for range 300 {
		a, b := pick(random, good...), pick(random, good...)
		paired = append(paired, row{
			"a": a, "b": b,
			"compare": r.run("semver(a).compareTo(semver(b))", a, b),
			"greater": r.run("semver(a).isGreaterThan(semver(b))", a, b),
			"less":    r.run("semver(a).isLessThan(semver(b))", a, b),
			"equal":   r.run("semver(a) == semver(b)", a, b),
		})
	}
	return []section{{name: "parsed", rows: parsed}, {name: "pairs", rows: paired}}
}

func unique(texts []string) []string {
	seen := map[string]bool{}
	var found []string
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			found = append(found, text)
		}
	}
	return found
}

// regexes runs find and findAll, which RE2 answers.
func regexes() []section {
	patterns := []string{
		"a", "b+", "o.p", "[0-9]+", "[a-z]*", "a*?", "a+?b", "^a", "b$", "(?m)^b$", "(?i)HOP", "(?s)a.b", "a|b", "(a|b)c", "(?:x|y)?z",
		"[[:upper:]][[:lower:]]+", "[[:digit:]]{2,3}", "[^[:space:]]+", "[^-]+", "[]a]+", "[a[]", "[&&]", "[a|b]", `\d+`, `\w+`, `\s`,
		`\bGPU\b`, `\Bp`, `\.`, `\z`, `\Aa`, `a{2}`, `a{1,}`, `a{,2}`, `a{`, `{}`, "(?P<n>a)b", "(?<n>a)b", "x?y?z?", "GPU-[0-9a-f]{8}",
		"", "é", ".", "[é]", `\-`, `\/`, "a\nb", "$", "^", "^$", "(?i:h)o", "a$|b", "[a-c]{2}-?[0-9]", "NVIDIA (H[0-9]+|L4)",
		"(", ")", "[", "*", "a**", "a++", `\`, "(?=a)", "(?!a)", "(?<=a)", `\1`, `(a)\1`, `\pL`, `\Z`, "(?#c)", "(a+)+", "(a|b)*", "[[:word:]", "[z-a]",
	}
	texts := []string{
		"", "a", "aaa", "ab", "aab\nb", "Hopper", "NVIDIA H200", "NVIDIA L4", "GPU-18db0e85-99e9-c746-8531-ffeb86328b39", "a-b_c.d", "x12yz345",
		"b\n", "é", "[a]&|", "a{,2}{}", "zyx xyz", "10.0.0.7",
	}
	r := newRunner()
	var rows []any
	for _, pattern := range patterns {
		first, all := []any{}, []any{}
		for _, text := range texts {
			first = append(first, r.run("a.find(b)", text, pattern))
			all = append(all, r.run("a.findAll(b)", text, pattern))
		}
		rows = append(rows, row{"pattern": pattern, "find": first, "find_all": all})
	}
	given := []any{}
	for _, text := range texts {
		given = append(given, text)
	}
	return []section{{name: "texts", rows: given}, {name: "rows", rows: rows}}
}
