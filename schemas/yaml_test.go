package schemas_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// TestYAMLRoundTrip: 1,000 values of every kind, written by a YAML library in three styles, are read as they were
// (H06). Plain text that YAML readers disagree about is refused; it is never read as something else (cases 4, 6).
func TestYAMLRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	read, refused := 0, 0
	for _, k := range score.Kinds() {
		for i := range 1000 {
			spec := vary(rnd, reflect.ValueOf(k.Sample)).Interface().(score.Spec)
			if check(spec) != nil {
				continue
			}
			body, err := score.Encode(spec)
			if err != nil {
				t.Fatal(err)
			}
			var tree any
			if err := json.Unmarshal([]byte(manifestOf(k.Kind, string(body))), &tree); err != nil {
				t.Fatal(err)
			}
			for _, style := range []yaml.Style{yaml.DoubleQuotedStyle, 0, yaml.LiteralStyle} {
				if style != yaml.DoubleQuotedStyle && i%4 > 0 {
					continue
				}
				var node yaml.Node
				if err := node.Encode(tree); err != nil {
					t.Fatal(err)
				}
				restyle(&node, style)
				text, err := yaml.Marshal(&node)
				if err != nil {
					t.Fatal(err)
				}
				m, ds := source.Manifest("a.yaml", text)
				if source.Errors(ds) > 0 {
					if refused++; style == yaml.DoubleQuotedStyle {
						t.Fatalf("%s: %v\n%s", k.Kind, ds, text)
					}
					continue
				}
				if read++; !reflect.DeepEqual(m.Spec.Scores[0].Spec, spec) {
					t.Fatalf("%s: read as %#v, want %#v\n%s", k.Kind, m.Spec.Scores[0].Spec, spec, text)
				}
			}
		}
	}
	if read < 10*refused || read < 4000 {
		t.Errorf("%d were read, %d refused", read, refused)
	}
	t.Logf("%d were read, %d refused", read, refused)
}

// restyle gives every text below n a style; 0 is the library's own choice.
func restyle(n *yaml.Node, style yaml.Style) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && style != 0 {
		n.Style = style
	}
	for _, c := range n.Content {
		restyle(c, style)
	}
}
