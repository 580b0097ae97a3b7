package score_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/continuo-fleet/continuo/score"
)

// values makes random values of plain data, of text types as their own makers say.
type values struct{ *rand.Rand }

func (r values) text() string {
	alphabet := []rune("aZ0 _-./:=\\\"'$%{}\n\t\r\u00e9\u0301\U0001F680\u2028<>&")
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteRune(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func (r values) special(t reflect.Type) (any, bool) {
	switch t {
	case reflect.TypeFor[score.Mode]():
		return score.Mode(r.IntN(0o10000)), true
	case reflect.TypeFor[score.Duration]():
		return score.Duration(r.Int64N(1 << 62)), true
	case reflect.TypeFor[score.Bytes]():
		return score.Bytes(r.Uint64N(1<<30)+1) << 10, true
	case reflect.TypeFor[score.Percent]():
		return score.Percent(r.IntN(99999) + 1), true
	case reflect.TypeFor[score.Port]():
		p := score.Port{Host: uint16(r.IntN(1<<15) + 1), Container: uint16(r.IntN(1<<15) + 1), More: uint16(r.IntN(3)), UDP: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			var a [16]byte
			for i := range a {
				a[i] = byte(r.IntN(256))
			}
			p.IP = netip.AddrFrom16(a).String()
			if r.IntN(2) == 0 {
				p.IP = netip.AddrFrom4([4]byte(a[:4])).String()
			}
		}
		return p, true
	case reflect.TypeFor[score.PortSpan]():
		return score.PortSpan{First: uint16(r.IntN(1<<15) + 1), More: uint16(r.IntN(1 << 15))}, true
	case reflect.TypeFor[score.CIDR]():
		return score.CIDR(netip.PrefixFrom(r.address(), r.IntN(33)).String()), true
	case reflect.TypeFor[score.IP]():
		return score.IP(r.address().String()), true
	case reflect.TypeFor[score.MAC]():
		return score.MAC(fmt.Sprintf("02:00:5e:10:%02x:%02x", r.IntN(256), r.IntN(256))), true
	case reflect.TypeFor[score.SSID]():
		b := make([]byte, 1+r.IntN(32))
		for i := range b {
			b[i] = byte(r.IntN(256)) >> r.IntN(2)
		}
		return score.SSID(b), true
	case reflect.TypeFor[score.Volume]():
		no := strings.NewReplacer(":", "")
		return score.Volume{Source: "s" + no.Replace(r.text()), Target: "/" + no.Replace(r.text()), ReadOnly: r.IntN(2) == 0}, true
	case reflect.TypeFor[score.Device]():
		d := score.Device{Host: "/dev/" + fmt.Sprint(r.IntN(100)), Rights: []string{"", "r", "rw", "wm"}[r.IntN(4)]}
		if d.Container = d.Host; r.IntN(2) == 0 {
			d.Container = "/dev/other"
		}
		return d, true
	case reflect.TypeFor[score.Value]():
		if r.IntN(2) == 0 {
			return score.FromSecret("s" + r.text()), true
		}
		return score.Text(r.text()), true
	}
	return nil, false
}

// address is a random one of either version.
func (r values) address() netip.Addr {
	var a [16]byte
	for i := range a {
		a[i] = byte(r.IntN(256))
	}
	if r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrFrom16(a)
}

// fill sets v to a random value; depth bounds nothing today, specs are flat.
func (r values) fill(t *testing.T, v reflect.Value) {
	if s, ok := r.special(v.Type()); ok {
		v.Set(reflect.ValueOf(s))
		return
	}
	if v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		t.Fatalf("teach values.special to make a %s", v.Type())
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(r.Int64N(1<<31) - 1<<30)
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(r.IntN(1 << 16)))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(t, v.Elem())
			if v.Elem().Kind() == reflect.Struct && v.Elem().IsZero() { // a part that says nothing is left out
				v.SetZero()
			}
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 { // an empty list is the same wish as none
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.fill(t, v.Index(i))
			}
		}
	case reflect.Map:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				r.fill(t, key)
				r.fill(t, elem)
				v.SetMapIndex(key, elem)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			r.fill(t, f)
			if f.Kind() == reflect.Slice && f.IsNil() && !strings.Contains(v.Type().Field(i).Tag.Get("json"), "omit") { // written as [], and read as that
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			}
		}
	default:
		t.Fatalf("teach values.fill to make a %s", v.Type())
	}
}

// TestGeneratedValuesRoundTrip: for every kind, 1,000 values survive JSON, by our codec and by
// encoding/json, and equal values have equal bytes (H06, cases 20).
func TestGeneratedValuesRoundTrip(t *testing.T) {
	for _, k := range score.Kinds() {
		t.Run(string(k.Kind), func(t *testing.T) {
			r := values{rand.New(rand.NewPCG(7, 11))}
			for i := range 1000 {
				v := reflect.New(k.Type).Elem()
				r.fill(t, v)
				in := score.Score{ID: score.ID(r.text()), Spec: v.Interface().(score.Spec)}
				b, err := score.Encode(in)
				if err != nil {
					t.Fatal(err)
				}
				var out score.Score
				if err := score.Decode(b, &out); err != nil || !reflect.DeepEqual(in, out) {
					t.Fatalf("value %d: got  %#v, %v\nwant %#v\nvia  %s", i, out, err, in, b)
				}
				if again, err := score.Encode(out); err != nil || string(again) != string(b) {
					t.Fatalf("value %d: bytes are\n%s, were\n%s", i, again, b)
				}
				std, err := json.Marshal(in)
				if err != nil {
					t.Fatal(err)
				}
				var back score.Score
				if err := json.Unmarshal(std, &back); err != nil || !reflect.DeepEqual(in, back) {
					t.Fatalf("value %d by encoding/json: got %#v, %v via %s", i, back, err, std)
				}
			}
		})
	}
}

// TestGeneratedPartsRoundTrip: the same for what a score says beside its spec, and for the policy of a manifest; and
// a clone shares nothing with it (H06).
func TestGeneratedPartsRoundTrip(t *testing.T) {
	r := values{rand.New(rand.NewPCG(3, 5))}
	seen := map[string]bool{}
	for i := range 1000 {
		var in score.Score
		for _, part := range []any{&in.Policy, &in.Health, &in.Engine, &in.After, &in.Decommission} {
			r.fill(t, reflect.ValueOf(part).Elem())
		}
		in.ID, in.Spec = score.ID(r.text()), score.Hostname{Name: "a"}
		m := manifest(in)
		r.fill(t, reflect.ValueOf(&m.Spec.Policy).Elem())
		b, err := score.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{`"decommission"`, `"maxFraction"`, `"cron"`, `"maxAge"`, `"url"`, `"port"`, `"retries"`, `"changes"`, `"successThreshold"`} {
			seen[word] = seen[word] || strings.Contains(string(b), word)
		}
		var out score.Manifest
		if err := score.Decode(b, &out); err != nil || !reflect.DeepEqual(m, out) {
			t.Fatalf("value %d: got  %#v, %v\nwant %#v\nvia  %s", i, out, err, m, b)
		}
		c := m.Clone()
		scribble(reflect.ValueOf(&c.Spec.Policy).Elem())
		scribble(reflect.ValueOf(&c.Spec.Scores[0].Policy).Elem())
		scribble(reflect.ValueOf(&c.Spec.Scores[0].Health).Elem())
		scribble(reflect.ValueOf(&c.Spec.Scores[0].Engine).Elem())
		if !reflect.DeepEqual(m, out) {
			t.Fatalf("value %d: a clone shares something with %s", i, b)
		}
	}
	for word, was := range seen {
		if !was {
			t.Errorf("no value had %s", word)
		}
	}
}

// scribble sets everything behind the pointers in v to zero.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	}
}

// TestStrictDecode is about what the schema refuses and decoding alone would let pass.
func TestStrictDecode(t *testing.T) { // cases 7, 21, 22
	tests := []struct{ name, spec, path, why string }{
		{"no mode", `{"path":"/a","content":""}`, "", `missing field "mode"`},
		{"null content", `{"path":"/a","content":null,"mode":"0644"}`, "/content", "found null: leave the field out, or give it a value"},
		{"null owner", `{"path":"/a","content":"","mode":"0644","owner":null}`, "/owner", "found null"},
		{"empty", `{}`, "", `missing field "path"`},
		{"a list", `[]`, "", `found a list where another type is wanted`},
		{"text", `"x"`, "", `found text where another type is wanted`},
		{"case", `{"Path":"/a","content":"","mode":"0644"}`, "/Path", `unknown field "Path"`},
		{"number as text", `{"path":"/a","content":1,"mode":"0644"}`, "/content", "found a number where another type is wanted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s score.Score
			if err := score.Decode([]byte(`{"kind":"file","id":"a","spec":`+tt.spec+`}`), &s); err != nil {
				t.Fatal(err)
			}
			o, ok := s.Spec.(score.Opaque)
			if !ok || o.Path != tt.path || !strings.HasPrefix(o.Why, tt.why) {
				t.Errorf("got %#v, want it unreadable at %q because %s", s.Spec, tt.path, tt.why)
			}
		})
	}
	container := func(rest string) (s score.Score) {
		if err := score.Decode([]byte(`{"kind":"container","id":"a","spec":{"name":"a","image":"b"`+rest+`}}`), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, rest := range []string{`,"env":null`, `,"env":{"A":null}`, `,"ports":[null]`, `,"command":["a",null]`} {
		if s := container(rest); reflect.TypeOf(s.Spec) != reflect.TypeFor[score.Opaque]() {
			t.Errorf("%s is read as %+v", rest, s.Spec)
		}
	}
	if s := container(`,"env":{"name":"x"}`); reflect.TypeOf(s.Spec) != reflect.TypeFor[score.Container]() {
		t.Errorf("got %+v", s.Spec)
	}
	var s score.Score
	if err := score.Decode([]byte(`{"kind":"file","id":"a"}`), &s); err == nil || !strings.Contains(err.Error(), `missing field "spec"`) {
		t.Errorf("a score without a spec: got %+v, %v", s, err)
	}
}

// FuzzDecode: any bytes are refused, or read as a manifest that survives its own JSON.
func FuzzDecode(f *testing.F) {
	for _, k := range score.Kinds() {
		b, err := score.Encode(manifest(score.Score{ID: "x", Spec: k.Sample}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m"},"spec":{"target":{},"scores":[{"kind":"x","id":"a","spec":{"a":[1,null]}}]},"extensions":{"e":[1]}}`))
	f.Add([]byte(`{"spec":{"scores":[{"kind":"file","id":"a"}]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var m score.Manifest
		if score.Decode(in, &m) != nil {
			return
		}
		m.Validate()
		b, err := score.Encode(m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var again score.Manifest
		if err := score.Decode(b, &again); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, b)
		}
		if b2, err := score.Encode(again); err != nil || string(b2) != string(b) {
			t.Errorf("written as\n%s, then as\n%s, %v", b, b2, err)
		}
	})
}

// Sections that this version does not act on come back as they were: order, spelling of
// numbers and texts; only white space goes. They do not matter to anything else (S27, S28, S29).
func TestExtensionsAreCarried(t *testing.T) {
	const section = `{"b":1.50,"a":[2e3,-0.0,-0,1E+2,1e400,9007199254740993],"s":"\u0041\/\u003c<\ud83d\ude00\u2028\u0000","":{},"n":null}`
	for _, doc := range []struct {
		text string
		into func() (any, func() map[string]jsontext.Value)
	}{
		{`{"apiVersion":"continuo/v1","kind":"Assignment","metadata":{"name":"pi"},"spec":{"scores":0,"manifests":[]},"extensions":{"backupPolicy":%s,"restoreDirective":%s}}`,
			func() (any, func() map[string]jsontext.Value) {
				var a score.Assignment
				return &a, func() map[string]jsontext.Value { return a.Extensions }
			}},
		{`{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m"},"spec":{"target":{"device":"pi"},"scores":[]},"extensions":{"backupPolicy":%s,"restoreDirective":%s}}`,
			func() (any, func() map[string]jsontext.Value) {
				var m score.Manifest
				return &m, func() map[string]jsontext.Value { return m.Extensions }
			}},
	} {
		in := fmt.Sprintf(doc.text, section, section)
		v, extensions := doc.into()
		if err := score.Decode([]byte(in), v); err != nil {
			t.Fatal(err)
		}
		if got := extensions()["restoreDirective"]; string(got) != section {
			t.Errorf("read as %s", got)
		}
		out, err := score.Encode(v)
		if err != nil || string(out) != in {
			t.Errorf("got  %s, %v\nwant %s", out, err, in)
		}
		odd := strings.ReplaceAll(fmt.Sprintf(doc.text, section, section), `"b":`, " \n\t\"b\" : ")
		v, extensions = doc.into()
		if err := score.Decode([]byte(odd), v); err != nil {
			t.Fatal(err)
		}
		if got := extensions()["backupPolicy"]; !strings.HasPrefix(string(got), "{ \n\t\"b\" : 1.50") {
			t.Errorf("read as %q", got)
		}
		if out, err := score.Encode(v); err != nil || string(out) != in {
			t.Errorf("got  %s, %v\nwant %s", out, err, in)
		}
	}
}

// What could not come back as it was is refused when it is read (S29).
func TestExtensionsThatCannotBeCarried(t *testing.T) {
	for _, tt := range []struct{ name, section, want string }{
		{"a key twice", `{"x":1,"x":2}`, `cannot decode /extensions/z/x: key "x" is given twice`},
		{"a key twice, deep and spelled otherwise", `{"a":[{"x":1,"\u0078":2}]}`, `cannot decode /extensions/z/a/0/x: key "x" is given twice`},
		{"half a surrogate pair", `{"a":"\ud800."}`, "surrogate"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "UTF-8"},
		{"not a number", `{"a":NaN}`, "cannot decode /extensions/z/a"},
	} {
		in := `{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m"},"spec":{"target":{"device":"pi"},"scores":[]},"extensions":{"z":` + tt.section + `}}`
		var m score.Manifest
		if err := score.Decode([]byte(in), &m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}
