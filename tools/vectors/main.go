// Command vectors asks Kubernetes' own code what quantities, semantic versions and device selectors mean.
//
// It writes the outcomes beside the inputs, for tests that compare ours with them:
//
//	cd tools/vectors && go run . ../../tests/vectors
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: vectors FOLDER"))
	}
	folder := os.Args[1]
	write(folder, "quantities.json", quantities())
	write(folder, "versions.json", versions())
	write(folder, "regexes.json", regexes())
	selectors := filepath.Join(folder, "selectors.json")
	text, err := os.ReadFile(selectors)
	if err != nil {
		fail(err)
	}
	write(folder, "selectors.json", judge(text))
}

// sources names the modules whose code gave the outcomes.
func sources() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fail(fmt.Errorf("no build info"))
	}
	var found []string
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/dynamic-resource-allocation",
			"github.com/blang/semver/v4", "github.com/google/cel-go":
			found = append(found, module.Path+" "+module.Version)
		}
	}
	return strings.Join(found, ", ")
}

// write puts one row on a line, so that a change of an outcome is a change of a line.
func write(folder, name string, sections []section) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n%s: %s", encode("source"), encode(sources()))
	for _, s := range sections {
		open, end := "[", "]"
		if s.keys != nil {
			open, end = "{", "}"
		}
		fmt.Fprintf(&out, ",\n%s: %s", encode(s.name), open)
		for i, row := range s.rows {
			if i > 0 {
				out.WriteString(",")
			}
			out.WriteString("\n  ")
			if s.keys != nil {
				out.WriteString(encode(s.keys[i]) + ": ")
			}
			out.WriteString(encode(row))
		}
		fmt.Fprintf(&out, "\n%s", end)
	}
	out.WriteString("\n}\n")
	if err := os.WriteFile(filepath.Join(folder, name), out.Bytes(), 0o644); err != nil {
		fail(err)
	}
}

// section is a list of rows, or with keys an object of them.
type section struct {
	name string
	keys []string
	rows []any
}

func encode(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fail(err)
	}
	return strings.TrimSpace(out.String())
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
