package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// The parts of CycloneDX 1.6 that are used: https://cyclonedx.org/docs/1.6/json/
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// contents lists what a binary was linked from, by what Go wrote into the binary itself.
func contents(path, name string, s source) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read what %s was made of: %w", name, err)
	}
	f, err := look(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	b := list(info, name, s)
	b.Metadata.Component.Hashes = []hash{{"SHA-256", f.sum}}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

func list(info *debug.BuildInfo, name string, s source) bom {
	main := component{
		Type: "application", Ref: purl(info.Main.Path, s.version, info.Path), Name: name, Version: s.version, PURL: purl(info.Main.Path, s.version, info.Path),
		Properties: []property{{"continuo:commit", s.commit}},
	}
	for _, setting := range info.Settings {
		if strings.HasPrefix(setting.Key, "GO") || setting.Key == "CGO_ENABLED" {
			main.Properties = append(main.Properties, property{"continuo:build:" + setting.Key, setting.Value})
		}
	}
	// The standard library is what most findings are about.
	version := strings.TrimPrefix(info.GoVersion, "go")
	std := purl("std", version, "")
	parts := []component{{Type: "library", Ref: std, Name: "std", Version: version, PURL: std}}
	for _, m := range info.Deps {
		used := cmp.Or(m.Replace, m)
		c := component{Type: "library", Name: used.Path, Version: used.Version, PURL: purl(used.Path, used.Version, "")}
		c.Ref = c.PURL
		// The sum of go.sum, as other tools write it here: the digest of the digests of the files of the module.
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(used.Sum, "h1:")); err == nil && len(sum) == 32 {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
		parts = append(parts, c)
	}
	slices.SortFunc(parts, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	all := dependency{Ref: main.Ref}
	for _, c := range parts {
		all.On = append(all.On, c.Ref)
	}
	return bom{"CycloneDX", "1.6", 1, metadata{s.date, main}, parts, []dependency{all}}
}

// purl names a module, and a package of it, as https://github.com/package-url/purl-spec does.
func purl(module, version, pkg string) string {
	p := "pkg:golang/" + strings.ToLower(module) + "@" + url.PathEscape(version)
	if below, ok := strings.CutPrefix(pkg, module+"/"); ok {
		p += "#" + below
	}
	return p
}
