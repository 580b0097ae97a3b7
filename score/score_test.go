package score_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestSamplesRoundTrip walks every registered kind: its sample is valid and survives JSON unchanged (H06).
func TestSamplesRoundTrip(t *testing.T) {
	for _, k := range score.Kinds() {
		t.Run(string(k.Kind), func(t *testing.T) {
			r := score.NewReport()
			k.Sample.Check(r)
			if p := r.Problems(); len(p) > 0 {
				t.Fatalf("sample has problems: %v", p)
			}
			in := score.Score{ID: "x", After: []score.ID{"y"}, Spec: k.Sample}
			b, err := score.Encode(in)
			if err != nil {
				t.Fatal(err)
			}
			var out score.Score
			if err := score.Decode(b, &out); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(in, out) {
				t.Errorf("got  %#v\nwant %#v\nvia  %s", out, in, b)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	tests := []struct{ name, in, path, want string }{
		{"unknown header", `{"kind":"file","id":"a","color":1,"spec":{}}`, "/color", `unknown field "color"`},
		{"case", `{"KIND":"file","id":"a","spec":{}}`, "/KIND", `unknown field "KIND"`},
		{"twice", `{"kind":"file","id":"a","id":"b","spec":{}}`, "/id", `key "id" is given twice`},
		{"trailing", `{"kind":"file","id":"a","spec":{}} {}`, "", `after top-level value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s score.Score
			err := score.Decode([]byte(tt.in), &s)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("got %v, want %s ...%s...", err, tt.path, tt.want)
			}
		})
	}
}

// TestUnreadableSpecIsOpaque: one score that this build cannot read does not hide the others (H37, S30, cases 22).
func TestUnreadableSpecIsOpaque(t *testing.T) {
	tests := []struct{ name, in, path, why string }{
		{"unknown kind", `{"kind":"hologram","id":"h","spec":{"z":1,"a":[true]}}`, "", ""},
		{"later version", `{"kind":"file/v2","id":"h","spec":{"z":1}}`, "", ""},
		{"unknown field", `{"kind":"file","id":"h","spec":{"path":"/a","colour":1}}`, "/colour", `unknown field "colour"`},
		{"wrong type", `{"kind":"file","id":"h","spec":{"path":"/a","mode":420}}`, "/mode", `found a number where text is wanted: quote it`},
		{"mode text", `{"kind":"file","id":"h","spec":{"path":"/a","mode":"x"}}`, "/mode", `want octal text such as "0644"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s score.Score
			if err := score.Decode([]byte(tt.in), &s); err != nil {
				t.Fatal(err)
			}
			o, ok := s.Spec.(score.Opaque)
			if !ok || !strings.Contains(o.Why, tt.why) || o.Path != tt.path {
				t.Fatalf("got %#v, want opaque at %s because %s", s.Spec, tt.path, tt.why)
			}
			out, err := score.Encode(s)
			if err != nil || string(out) != tt.in {
				t.Errorf("got %s, %v: its bytes must survive", out, err)
			}
		})
	}
}

// What was handed out stays as it is, whatever is done to a copy (S39).
func TestCloneSharesNothing(t *testing.T) {
	const text = `{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m","labels":{"a":"1"}},` +
		`"spec":{"target":{"selector":{"matchLabels":{"b":"1"},"matchExpressions":[{"key":"c","operator":"In","values":["d"]}]}},` +
		`"scores":[{"kind":"hostname","id":"h","after":["x"],"spec":{"name":"pi"}}]},"extensions":{"e":[1]}}`
	var m score.Manifest
	if err := score.Decode([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	c.Metadata.Labels["a"] = "2"
	c.Spec.Target.Selector.MatchLabels["b"] = "2"
	c.Spec.Target.Selector.MatchExpressions[0].Values[0] = "2"
	c.Spec.Target.Selector.MatchExpressions[0].Key = "2"
	c.Spec.Scores[0].After[0] = "2"
	c.Spec.Scores[0].ID = "2"
	c.Extensions["e"][1] = '2'
	c.Extensions["f"] = nil
	if b, err := score.Encode(m); err != nil || string(b) != text {
		t.Errorf("got  %s, %v\nwant %s", b, err, text)
	}
}
