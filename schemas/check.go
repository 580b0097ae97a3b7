package schemas

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// checkShape reports where d departs from a schema. The engine finds the places; the words
// are ours. For some of it the kinds have better words: late reports what they have said
// nothing about.
func checkShape(d *source.Document, name string) (late func()) {
	s, ok := load()[name]
	if !ok {
		panic(fmt.Sprintf("schemas: no schema %q", name))
	}
	err := s.compiled.Validate(d.Value())
	if err == nil {
		return func() {}
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		d.Report("", score.Error, "cannot check the document: %v", err)
		return func() {}
	}
	found := leaves(ve, nil)
	// One value can break several rules: the first of them, in this order, is told.
	slices.SortStableFunc(found, func(a, b *jsonschema.ValidationError) int { return rank(a) - rank(b) })
	for _, leaf := range found {
		if !s.later(leaf) {
			s.report(d, leaf)
		}
	}
	return func() {
		d.NextStage()
		for _, leaf := range found {
			if s.later(leaf) {
				s.report(d, leaf)
			}
		}
	}
}

// later reports whether a kind can say better what is wrong: the shape of a text that is
// not a text type.
func (s schema) later(ve *jsonschema.ValidationError) bool {
	k := keyword(ve)
	return k == "maxLength" || k == "pattern" && !source.IsFormat(text(s.at(ve.AbsoluteKeywordLocation)["pattern"]))
}

func leaves(ve *jsonschema.ValidationError, out []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(ve.Causes) == 0 {
		return append(out, ve)
	}
	for _, c := range ve.Causes {
		out = leaves(c, out)
	}
	return out
}

var order = []string{"type", "const", "enum", "pattern", "format", "additionalProperties", "required"}

func rank(ve *jsonschema.ValidationError) int {
	if i := slices.Index(order, keyword(ve)); i >= 0 {
		return i
	}
	return len(order)
}

func keyword(ve *jsonschema.ValidationError) string {
	return ve.KeywordLocation[strings.LastIndexByte(ve.KeywordLocation, '/')+1:]
}

func (s schema) report(d *source.Document, leaf *jsonschema.ValidationError) {
	path, err := url.PathUnescape(leaf.InstanceLocation)
	if err != nil {
		path = leaf.InstanceLocation
	}
	rule := s.at(leaf.AbsoluteKeywordLocation)
	switch keyword(leaf) {
	case "type":
		want := text(rule["type"])
		if either := texts(rule["type"]); len(either) > 0 {
			want = either[0] // the one that authors write most
		}
		if want == source.Object {
			properties, _ := rule["properties"].(map[string]any)
			d.NoMapping(path, slices.Sorted(maps.Keys(properties)))
			return
		}
		d.WrongType(path, want, text(rule["pattern"]))
	case "const":
		d.NotOneOf(path, []string{text(rule["const"])})
	case "enum":
		d.NotOneOf(path, texts(rule["enum"]))
	case "pattern":
		d.WrongText(path, text(rule["pattern"]), s.about(leaf, rule))
	case "maxLength":
		d.Report(path, score.Error, "text is longer than %v characters", rule["maxLength"])
	case "minimum":
		least, _ := rule["minimum"].(float64)
		d.TooSmall(path, least)
	case "maximum":
		most, _ := rule["maximum"].(float64)
		d.TooLarge(path, most)
	case "format":
		d.Report(path, score.Error, "text is no %s", text(rule["format"]))
	case "additionalProperties", "required":
		properties, _ := rule["properties"].(map[string]any)
		d.Fields(path, slices.Sorted(maps.Keys(properties)), texts(rule["required"]))
	default:
		d.Report(path, score.Error, "%s", leaf.Message)
	}
}

// about is what the schema says of a value.
func (s schema) about(leaf *jsonschema.ValidationError, rule map[string]any) string {
	if a := text(rule["description"]); a != "" {
		return a
	}
	return leaf.Message
}

// at returns the schema object that holds a keyword.
func (s schema) at(location string) map[string]any {
	_, pointer, _ := strings.Cut(location, "#")
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	var v any = s.root
	for _, step := range steps[:len(steps)-1] {
		if u, err := url.PathUnescape(step); err == nil {
			step = u
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch c := v.(type) {
		case map[string]any:
			v = c[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	m, _ := v.(map[string]any)
	return m
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func texts(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, e := range l {
		out = append(out, text(e))
	}
	return out
}
