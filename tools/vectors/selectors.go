package main

import (
	"context"
	"encoding/json"
	"sort"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// input is what is kept of the file: the rest is written anew.
type input struct {
	Devices map[string]json.RawMessage `json:"devices"`
	Rows    []struct {
		Cel string `json:"cel"`
	} `json:"rows"`
}

type device struct {
	Driver     string                                                    `json:"driver"`
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// judge compiles each selector as the API server does on creation, and runs it on each device.
func judge(text []byte) []section {
	var given input
	if err := json.Unmarshal(text, &given); err != nil {
		fail(err)
	}
	names := make([]string, 0, len(given.Devices))
	for name := range given.Devices {
		names = append(names, name)
	}
	sort.Strings(names)
	var devices, rows []any
	for _, name := range names {
		devices = append(devices, given.Devices[name])
	}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	for _, r := range given.Rows {
		found := row{"cel": r.Cel}
		rows = append(rows, found)
		compiled := compiler.CompileCELExpression(r.Cel, cel.Options{EnvType: ptr.To(environment.NewExpressions)})
		if compiled.Error != nil {
			found["refused"] = true
			continue
		}
		// Validation refuses both when a claim is created (pkg/apis/resource/validation).
		if len(r.Cel) > resourceapi.CELSelectorExpressionMaxLength || compiled.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
			found["refused"] = true
			found["cost"] = compiled.MaxCost
			continue
		}
		found["cost"] = compiled.MaxCost
		trueOf, errorOn := []string{}, []string{}
		for _, name := range names {
			var d device
			if err := json.Unmarshal(given.Devices[name], &d); err != nil {
				fail(err)
			}
			matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: d.Driver, Attributes: d.Attributes, Capacity: d.Capacity})
			if err != nil {
				errorOn = append(errorOn, name)
			} else if matches {
				trueOf = append(trueOf, name)
			}
		}
		found["true_of"], found["error_on"] = trueOf, errorOn
	}
	return []section{{name: "devices", keys: names, rows: devices}, {name: "rows", rows: rows}}
}
