package schemas

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/score"
)

// Explain returns what the schemas say of a kind or a field of one, for a person: "file",
// "container.ports". Documents are explained too: "manifest.spec.target", "status".
func Explain(path string) (string, error) {
	steps := strings.Split(path, ".")
	s, at, err := explained(steps[0])
	if err != nil {
		return "", err
	}
	field := ""
	required := false
	for i, name := range steps[1:] {
		at = s.item(at)
		properties, _ := at["properties"].(map[string]any)
		p, ok := properties[name].(map[string]any)
		if !ok && i == 0 && isKind(steps[0]) && s.ofScore(name) {
			return "", fmt.Errorf("%s.%s stands beside the spec: continuo explain manifest.spec.scores.%[2]s", steps[0], name)
		}
		if !ok {
			return "", fmt.Errorf("%s has no field %q%s", strings.Join(steps[:i+1], "."), name,
				oneOf(name, fieldNames(at)))
		}
		required = slices.Contains(texts(at["required"]), name)
		at, field = s.follow(p), name
	}
	var b strings.Builder
	if field == "" {
		fmt.Fprintf(&b, "%s\n\n", strings.ToUpper(path))
	} else {
		fmt.Fprintf(&b, "%s: %s\n\n", path, typeWords(at)+requiredWord(required))
	}
	paragraph(&b, "", text(at["description"]))
	if info, ok := score.Lookup(score.Kind(path)); ok {
		fmt.Fprintf(&b, "\nNeeds of the device: %s\n", join(info.Needs))
		if info.Stability == score.Experimental {
			b.WriteString("\nExperimental: it may change, or go. A manifest needs allowExperimental: true to use it.\n")
		}
	}
	limits(&b, at)
	inner := s.item(at)
	if text(at["type"]) == "array" {
		limits(&b, inner)
	}
	if names := fieldNames(inner); len(names) > 0 {
		b.WriteString("\nFields:\n")
		properties := inner["properties"].(map[string]any)
		for _, name := range names {
			p := s.follow(properties[name].(map[string]any))
			fmt.Fprintf(&b, "\n  %s: %s\n", name, typeWords(p)+requiredWord(slices.Contains(texts(inner["required"]), name)))
			paragraph(&b, "      ", text(p["description"]))
			if e := text(p["x-effect"]); e != "" {
				fmt.Fprintf(&b, "      Effect of a change, at worst: %s.\n", e)
			}
		}
	}
	if value := s.example(at, isKind(steps[0])); value != nil {
		b.WriteString("\nExample:\n\n")
		switch {
		case field != "":
			value = map[string]any{field: value}
		case steps[0] != "manifest":
			value = map[string]any{"kind": path, "id": "example", "spec": value}
		}
		writeYAML(&b, "  ", value)
	}
	return b.String(), nil
}

// explained finds a kind, or a document.
func explained(name string) (schema, map[string]any, error) {
	all := load()
	m := all["manifest"]
	kinds := []string{}
	for _, k := range score.Kinds() {
		kinds = append(kinds, string(k.Kind))
	}
	if i := slices.Index(kinds, name); i >= 0 {
		defs, _ := m.root["$defs"].(map[string]any)
		for _, d := range defs {
			if d, ok := d.(map[string]any); ok && text(d["title"]) == name {
				return m, d, nil
			}
		}
	}
	if s, ok := all[name]; ok {
		return s, s.root, nil
	}
	return schema{}, nil, fmt.Errorf("there is no kind and no document %q%s", name, oneOf(name, append(kinds, Names()...)))
}

// follow resolves a reference; what stands beside it goes before what it refers to.
func (s schema) follow(p map[string]any) map[string]any {
	name, ok := strings.CutPrefix(text(p["$ref"]), "#/$defs/")
	if !ok {
		return p
	}
	defs, _ := s.root["$defs"].(map[string]any)
	d, _ := defs[name].(map[string]any)
	out := maps.Clone(d)
	maps.Copy(out, p)
	return out
}

// item is what a list is of, and at itself if it is none.
func (s schema) item(at map[string]any) map[string]any {
	if items, ok := at["items"].(map[string]any); ok {
		return s.follow(items)
	}
	return at
}

// example is a value that at may have: the one that the schema gives, or for the kinds one that is
// put together from those of its fields. Documents have fields that exclude each other.
func (s schema) example(at map[string]any, together bool) any {
	if l, ok := at["examples"].([]any); ok {
		return l[len(l)-1] // that of the field stands behind that of its type
	}
	if l, ok := at["enum"].([]any); ok {
		return l[0]
	}
	switch text(at["type"]) {
	case "boolean":
		return true
	case "array":
		item := s.item(at)
		if l, ok := item["examples"].([]any); ok {
			return l
		}
		if one := s.example(item, together); one != nil {
			return []any{one}
		}
	case "object":
		properties, _ := at["properties"].(map[string]any)
		all := map[string]any{}
		for name, p := range properties {
			if v := s.example(s.follow(p.(map[string]any)), together); v != nil && together {
				all[name] = v
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// ofScore reports whether name is a field of scores of all kinds, such as after.
func (s schema) ofScore(name string) bool {
	defs, _ := s.root["$defs"].(map[string]any)
	score, _ := defs["Score"].(map[string]any)
	properties, _ := score["properties"].(map[string]any)
	_, ok := properties[name]
	return ok
}

func isKind(name string) bool {
	_, ok := score.Lookup(score.Kind(name))
	return ok
}

// fieldNames lists the fields of an object: what must be given first.
func fieldNames(at map[string]any) []string {
	properties, _ := at["properties"].(map[string]any)
	names := texts(at["required"])
	for _, n := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func typeWords(p map[string]any) string {
	switch text(p["type"]) {
	case "string":
		if len(texts(p["enum"])) > 0 {
			return "one of " + join(texts(p["enum"]))
		}
		return "text"
	case "integer":
		return "whole number"
	case "number":
		return "number"
	case "boolean":
		return "true or false"
	case "array":
		return "list"
	case "object":
		if values, ok := p["additionalProperties"].(map[string]any); ok && text(values["type"]) == "string" {
			return "mapping of text to text"
		}
		return "mapping"
	}
	return "any value"
}

func requiredWord(required bool) string {
	if required {
		return ", required"
	}
	return ""
}

// limits writes what a value is checked against.
func limits(b *strings.Builder, at map[string]any) {
	if p := text(at["pattern"]); p != "" {
		fmt.Fprintf(b, "\nPattern: %s\n", p)
	}
	if n, ok := at["minimum"]; ok {
		fmt.Fprintf(b, "\nAt least %v.\n", n)
	}
	if n, ok := at["maximum"]; ok {
		fmt.Fprintf(b, "\nAt most %v.\n", n)
	}
	if e := text(at["x-effect"]); e != "" {
		fmt.Fprintf(b, "\nEffect of a change, at worst: %s.\n", e)
	}
	if n, ok := at["maxLength"]; ok {
		fmt.Fprintf(b, "\nAt most %v characters.\n", n)
	}
	if d, ok := at["default"]; ok {
		fmt.Fprintf(b, "\nDefault: %v\n", d)
	}
	if c := text(at["const"]); c != "" {
		fmt.Fprintf(b, "\nAlways: %s\n", c)
	}
}

// paragraph breaks s into lines of at most 80 characters.
func paragraph(b *strings.Builder, indent, s string) {
	line := indent
	for word := range strings.FieldsSeq(s) {
		if len(line)+len(word) > 80 && line != indent {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	if line != indent {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func join[S ~string](words []S) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

func oneOf(name string, names []string) string {
	if n, ok := score.Nearest(name, names); ok {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	if len(names) == 0 {
		return ": it has no fields"
	}
	return "; there are " + strings.Join(names, ", ")
}

// writeYAML writes an example. Every text is quoted, which is always right.
func writeYAML(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range exampleOrder(v) {
			if inner, ok := v[k].(map[string]any); ok && len(inner) > 0 {
				fmt.Fprintf(b, "%s%s:\n", indent, k)
				writeYAML(b, indent+"  ", inner)
				continue
			}
			if list, ok := v[k].([]any); ok && len(list) > 0 {
				fmt.Fprintf(b, "%s%s:\n", indent, k)
				for _, item := range list {
					var one strings.Builder
					writeYAML(&one, indent+"    ", item)
					fmt.Fprintf(b, "%s  - %s\n", indent, strings.Trim(one.String(), " \n"))
				}
				continue
			}
			fmt.Fprintf(b, "%s%s: ", indent, k)
			writeYAML(b, "", v[k])
		}
	default:
		out, err := score.Encode(v) // without escaping for HTML: ">= 4.4" stays readable
		if err != nil {
			panic("schemas: " + err.Error())
		}
		fmt.Fprintf(b, "%s%s\n", indent, out)
	}
}

// exampleOrder has what names a thing before what it is.
func exampleOrder(m map[string]any) []string {
	first := []string{"apiVersion", "kind", "id", "metadata", "name", "path", "unit"}
	place := func(k string) int {
		if i := slices.Index(first, k); i >= 0 {
			return i
		}
		return len(first)
	}
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return place(a) - place(b) })
	return keys
}
