package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
)

// A component is one of CycloneDX: a program, or a module that it is made of.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom lists the modules of a program, as 'go version -m' prints them, in
// CycloneDX 1.6 (ECMA-424). It has no time and no serial number, so that it is
// the same whenever it is made.
func sbom(info *debug.BuildInfo) []byte {
	type metadata struct {
		Component component `json:"component"`
	}
	bom := struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{componentOf("application", &info.Main)}}
	for _, s := range info.Settings {
		bom.Metadata.Component.Properties = append(bom.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
	}
	// The name by which databases of vulnerabilities know the standard library.
	std := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range append([]*debug.Module{std}, info.Deps...) {
		bom.Components = append(bom.Components, componentOf("library", m))
	}
	text, _ := json.MarshalIndent(bom, "", "  ")
	return append(text, '\n')
}

func componentOf(kind string, m *debug.Module) component {
	c := component{Type: kind, Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version}
	c.Ref = c.PURL
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
