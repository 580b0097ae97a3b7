package schemas_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// TestSchemas: each schema is one, in the words of its draft; it is closed, and it says
// what every field is (H73: these are all the documents there are).
func TestSchemas(t *testing.T) {
	want := []string{"announcement", "assignment", "audit", "envelope", "heartbeat", "info", "manifest", "operation", "plan", "receipt", "requests", "status"}
	if got := schemas.Names(); !slices.Equal(got, want) {
		t.Errorf("schemas are %v, want %v", got, want)
	}
	meta := jsonschema.MustCompile("https://json-schema.org/draft/2020-12/schema")
	for _, name := range schemas.Names() {
		var root map[string]any
		if err := json.Unmarshal(schemas.Text(name), &root); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := meta.Validate(root); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
		if root["$id"] != schemas.Address+name+".json" || root["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: $id is %v, $schema is %v", name, root["$id"], root["$schema"])
		}
		all := map[string]any{name: root}
		if defs, ok := root["$defs"].(map[string]any); ok {
			maps.Copy(all, defs)
		}
		for at, s := range all {
			s := s.(map[string]any)
			properties, ok := s["properties"].(map[string]any)
			if !ok {
				continue
			}
			if s["additionalProperties"] != false && name != "announcement" { // NATS adds headers of its own
				t.Errorf("%s: %s takes fields that it does not know", name, at)
			}
			for p, v := range properties {
				if d, _ := v.(map[string]any)["description"].(string); d == "" {
					t.Errorf("%s: %s.%s has no description", name, at, p)
				}
			}
		}
	}
}

// TestEveryFieldHasAnExample: whoever writes a score sees what a value looks like, at every
// field of every kind and of what is in it: by an example, a closed set of words, or yes and no.
// A field that the sample of its kind has is shown as there.
func TestEveryFieldHasAnExample(t *testing.T) {
	type schema = map[string]any
	var root struct {
		Defs map[string]schema `json:"$defs"`
	}
	if err := json.Unmarshal(schemas.Text("manifest"), &root); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var walk func(kind score.Kind, name string)
	// shown follows what a field holds: its own example, or that of all that is in it.
	var shown func(kind score.Kind, s schema) bool
	shown = func(kind score.Kind, s schema) bool {
		if ref, _ := s["$ref"].(string); ref != "" {
			walk(kind, strings.TrimPrefix(ref, "#/$defs/"))
			return true
		}
		if examples, _ := s["examples"].([]any); len(examples) > 0 || s["enum"] != nil || s["const"] != nil || s["type"] == "boolean" {
			return true
		}
		items, ok := s["items"].(schema)
		return ok && shown(kind, items)
	}
	walk = func(kind score.Kind, name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		properties, _ := root.Defs[name]["properties"].(schema)
		if len(properties) == 0 {
			t.Errorf("%s: %s has no fields", kind, name)
		}
		for field, p := range properties {
			p := p.(schema)
			if d, _ := p["description"].(string); d == "" {
				t.Errorf("%s: %s.%s has no description: write a comment above the field", kind, name, field)
			}
			if !shown(kind, p) {
				t.Errorf("%s: %s.%s has no example: give it one (jsonschema:\"example=…\"), or let the sample of the kind have it", kind, name, field)
			}
		}
	}
	for _, k := range score.Kinds() {
		walk(k.Kind, k.Type.Name())
	}
}

// manifestOf is a valid manifest but for its one score.
func manifestOf(kind score.Kind, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m"},"spec":{"target":{"device":"d"},"policy":{"preset":"converge"},`+
		`"scores":[{"kind":%q,"id":"x","spec":%s}]}}`, kind, spec)
}

// TestEveryFieldWrong walks the fields of every kind and makes each wrong in every way: it
// is always told, at that field, once or twice (H50).
func TestEveryFieldWrong(t *testing.T) {
	n := 0
	for _, k := range score.Kinds() {
		sample, err := score.Encode(k.Sample)
		if err != nil {
			t.Fatal(err)
		}
		if _, ds := schemas.Validate("a.json", []byte(manifestOf(k.Kind, string(sample)))); len(ds) > 0 {
			t.Errorf("the sample of %s: %v", k.Kind, ds)
			continue
		}
		for f := range k.Type.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := "/spec/scores/0/spec/" + name
			tests := []struct{ what, value, at string }{
				{"null", "null", at},
				{"nested", `{"a":{"b":["c"]}}`, at},
				{"lists", `[["a"]]`, at},
				{"fraction", "1.5", at},
				{"misspelt", "", at + "x"},
			}
			if f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.Bool {
				tests = append(tests, struct{ what, value, at string }{"bool", "true", at})
			}
			if !strings.Contains(options, "omit") {
				tests = append(tests, struct{ what, value, at string }{"left out", "", "/spec/scores/0/spec"})
			}
			for _, tt := range tests {
				fields := map[string]json.RawMessage{}
				if err := json.Unmarshal(sample, &fields); err != nil {
					t.Fatal(err)
				}
				switch tt.what {
				case "misspelt":
					old, ok := fields[name]
					if !ok {
						old = json.RawMessage(`"x"`)
					}
					delete(fields, name)
					fields[name+"x"] = old
				case "left out":
					delete(fields, name)
				default:
					fields[name] = json.RawMessage(tt.value)
				}
				spec, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				n++
				_, ds := schemas.Validate("a.json", []byte(manifestOf(k.Kind, string(spec))))
				if e := schemas.Errors(ds); e < 1 || e > 2 {
					t.Errorf("%s.%s %s: %d problems: %v", k.Kind, name, tt.what, e, ds)
					continue
				}
				if _, dds := source.Manifest("a.json", []byte(manifestOf(k.Kind, string(spec)))); schemas.Errors(dds) == 0 {
					t.Errorf("%s.%s %s: a device takes it", k.Kind, name, tt.what)
				}
				ds = slices.DeleteFunc(ds, func(d source.Diagnostic) bool { return d.Severity == score.Warning })
				if !slices.ContainsFunc(ds, func(d schemas.Diagnostic) bool { return strings.HasPrefix(d.Path, tt.at) }) {
					t.Errorf("%s.%s %s: told at %s, want %s: %s", k.Kind, name, tt.what, ds[0].Path, tt.at, ds[0].Text)
				}
				for _, d := range ds {
					if bad := goish.FindString(d.Text); bad != "" {
						t.Errorf("%s.%s %s: %q is not for people: %s", k.Kind, name, tt.what, bad, d)
					}
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("%d wrong manifests only", n)
	}
}

// TestRoundTrip: whatever a kind can say fits its schema, in JSON and in YAML, and is read
// as the same (H06, case 20). Values are made from the samples, by type.
func TestRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, k := range score.Kinds() {
		for range 200 {
			spec := vary(rnd, reflect.ValueOf(k.Sample)).Interface().(score.Spec)
			body, err := score.Encode(spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"a.json", "a.yaml"} {
				m, ds := schemas.Validate(name, []byte(manifestOf(k.Kind, string(body))))
				if problems := check(spec); problems != nil {
					if len(ds) == 0 {
						t.Errorf("%s: %s is taken, and has %v", name, body, problems)
					}
					continue
				}
				if name == "a.yaml" && strings.ContainsAny(string(body), "\u0085\u2028\x7f") {
					continue // JSON leaves them as they are, and YAML wants them escaped
				}
				if schemas.Errors(ds) > 0 {
					t.Fatalf("%s: %s: %v", name, body, ds)
				}
				if got := m.Spec.Scores[0].Spec; !reflect.DeepEqual(got, spec) {
					t.Fatalf("%s: %s is read as %#v, want %#v", name, body, got, spec)
				}
			}
		}
	}
}

func check(s score.Spec) []score.Problem {
	r := score.NewReport()
	s.Check(r)
	return slices.DeleteFunc(r.Problems(), func(p score.Problem) bool { return p.Severity != score.Error })
}

// vary returns a value like v: optional fields come and go, text types and free text are
// anything.
func vary(rnd *rand.Rand, v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, to := f.Tag.Get("jsonschema"), out.Field(i)
		if strings.Contains(f.Tag.Get("json"), "omit") && rnd.IntN(3) == 0 {
			to.SetZero()
			continue
		}
		switch x := to.Addr().Interface().(type) {
		case *score.Mode:
			*x = score.Mode(rnd.IntN(0o10000))
		case *[]score.Port:
			*x = []score.Port{{IP: []string{"", "127.0.0.1", "::1"}[rnd.IntN(3)], Host: uint16(1 + rnd.IntN(60000)), Container: uint16(1 + rnd.IntN(60000)), More: uint16(rnd.IntN(3)), UDP: rnd.IntN(2) == 0}}
		case *[]score.Volume:
			*x = []score.Volume{{Source: []string{"/srv/web", "cache"}[rnd.IntN(2)], Target: "/data", ReadOnly: rnd.IntN(2) == 0}}
		case *map[string]score.Value:
			*x = map[string]score.Value{"A": score.Text(anything(rnd)), "_b": score.FromSecret("s")}
		case *[]score.Device:
			*x = []score.Device{{Host: "/dev/video0", Container: []string{"/dev/video0", "/dev/v"}[rnd.IntN(2)], Rights: []string{"", "r", "rw"}[rnd.IntN(3)]}}
		case *map[string]string:
			*x = map[string]string{"a.b": strings.NewReplacer("\x00", "", "\n", "", "\r", "").Replace(anything(rnd))}
		case *[]string:
			*x = []string{anything(rnd), anything(rnd)}
		case **bool:
			*x = new(rnd.IntN(2) == 0)
		case *bool:
			*x = rnd.IntN(2) == 0
		case **score.Template:
			*x = &score.Template{Text: strings.ReplaceAll(anything(rnd), "{", "") + "{{ .vars.a }}", Vars: map[string]string{"a": anything(rnd)}}
		case **score.BlobRef:
			*x = &score.BlobRef{SHA256: strings.Repeat("0a", 32), Size: rnd.Int64N(1 << 20)}
		case *[]score.Normalization:
			*x = []score.Normalization{score.NormalizeTrailingNewline, score.NormalizeCRLF}[rnd.IntN(2):]
		case *[]score.HostEntry:
			*x = []score.HostEntry{{Address: "2001:db8::1", Names: []string{"a", "b.example.org"}}}
		default:
			if words := strings.Split(tag, "enum="); len(words) > 1 {
				to.SetString(strings.Trim(strings.Split(words[1+rnd.IntN(len(words)-1)], ",")[0], " "))
			} else if f.Name == "Content" {
				to.SetString(anything(rnd))
			}
		}
	}
	return out
}

// anything is text that readers have got wrong.
func anything(rnd *rand.Rand) string {
	parts := []string{"", "a", " ", "\n", "\r\n", "\t", "no", "0644", "~", "null", "#", ": ", "- ", "'", `"`, `\`, "\\n", "{", "ü", "€", "😀", "\u2028", "\u0085", "\x00", "\x7f", "<&>", "|", "%", "@", "*x", "&x", "!!str"}
	var b strings.Builder
	for range rnd.IntN(6) {
		b.WriteString(parts[rnd.IntN(len(parts))])
	}
	return b.String()
}

// TestNoNull: nothing is written as null, which would be refused; the zero value neither (case 21).
func TestNoNull(t *testing.T) {
	for _, k := range score.Kinds() {
		b, err := score.Encode(reflect.Zero(k.Type).Interface())
		if err != nil || strings.Contains(string(b), "null") {
			t.Errorf("the zero value of %s is %s, %v", k.Kind, b, err)
		}
	}
}

// TestThreeWays: a field that is left out, one that is empty and one that is null (case 21).
func TestThreeWays(t *testing.T) {
	tests := []struct {
		env  string
		want map[string]score.Value
		bad  bool
	}{
		{``, nil, false},
		{`,"env":{}`, map[string]score.Value{}, false},
		{`,"env":null`, nil, true},
		{`,"env":{"A":""}`, map[string]score.Value{"A": {}}, false},
		{`,"env":{"A":null}`, nil, true},
	}
	for _, tt := range tests {
		m, ds := schemas.Validate("a.json", []byte(manifestOf("container", `{"name":"x","image":"a.b/c:1"`+tt.env+`}`)))
		if bad := schemas.Errors(ds) > 0; bad != tt.bad {
			t.Errorf("%s: %v", tt.env, ds)
		}
		if got := m.Spec.Scores; !tt.bad && !reflect.DeepEqual(got[0].Spec.(score.Container).Env, tt.want) {
			t.Errorf("%s is %v", tt.env, got[0].Spec)
		}
	}
	empty, err := score.Encode(score.Container{Name: "a", Image: "a.b/c:1", Env: map[string]score.Value{}})
	if err != nil || strings.Contains(string(empty), "env") {
		t.Errorf("an empty mapping is written as %s, and not left out: %v", empty, err)
	}
}

// TestDocuments: what devices and publishers write fits the schemas, and what is not theirs
// does not (H61).
func TestDocuments(t *testing.T) {
	observed, err := score.Encode(file.Observed{Present: true, Type: "regular", SHA256: strings.Repeat("0", 64), Size: 1, Mode: "0644"})
	if err != nil {
		t.Fatal(err)
	}
	st := interpret.DeviceStatus{
		APIVersion: score.APIVersion, Kind: interpret.StatusKind, Device: "pi-7", Phase: interpret.PhaseIdle, State: interpret.StateConverged,
		Agent: interpret.Agent{Version: "1"},
		Manifests: []interpret.ManifestStatus{{Name: "m", Generation: 1, State: interpret.StateConverged, Scores: []interpret.ScoreStatus{
			{ID: "x", Kind: score.KindFile, Outcome: interpret.Changed, Observed: observed, Changes: []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}},
			{ID: "y", Kind: "hologram/v9", Outcome: interpret.Unsupported, Code: interpret.CodeUnknownKind},
		}}},
	}
	plan := interpret.Plan{APIVersion: score.APIVersion, Kind: interpret.PlanKind, Device: "pi-7", Generation: 3, Unchanged: 2, Time: time.Unix(1e9, 0).UTC(),
		Actions: []interpret.PlannedAction{{Manifest: "m", Generation: 1, Score: "x", Kind: score.KindFile, Action: interpret.ActionChange, Cause: interpret.CauseDrift,
			Effect: interpret.Mutate, Provenance: interpret.Foreign, Decision: interpret.DecideRefuse, Code: "foreign", Backup: true, Restarts: []score.ID{"y"},
			Changes: []interpret.Change{{Field: "mode", Have: "0600", Want: "0644", Effect: interpret.Mutate, Replaces: true}}}}}
	if err := plan.Seal(); err != nil {
		t.Fatal(err)
	}
	asMap := func(v any) (m map[string]any) {
		b, err := score.Encode(v)
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	good := map[string]map[string]any{
		"status": asMap(st),
		"assignment": asMap(score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-7", Generation: 3},
			Spec: score.AssignmentSpec{Complete: true, Scores: 1, Manifests: []score.Manifest{manifest(t)}}}),
		"info": asMap(interpret.DeviceInfo{APIVersion: score.APIVersion, Kind: interpret.InfoKind, Device: "pi-7", Agent: interpret.Agent{Version: "1"}, Time: time.Unix(1e9, 0).UTC(),
			Tools: []interpret.Tool{{Name: "podman", Condition: topology.ToolShadowed, Copies: []topology.ToolCopy{{Path: "/usr/local/bin/podman", Why: "exit status 1"}, {Path: "/usr/bin/podman", Version: "5.4.2", Works: true}}}},
			Clock: interpret.Clock{AheadSeconds: new(-90.1), WithinSeconds: 0.6},
			Facts: topology.Facts{Model: "Raspberry Pi 5", MemoryMiB: 8063, OS: topology.OS{ID: "debian"}, Disks: []topology.Disk{{Path: "/", SizeMiB: 9}}, Cards: []topology.Card{{Device: "mmcblk0", LifeUsedPercent: 110}},
				Temperature: new(41.5), Power: &topology.Power{Throttled: true}, ClockSynchronized: new(false), Interfaces: []topology.Interface{{Name: "eth0", Addresses: []string{"192.0.2.7/24"}}}, RebootRequired: true}}),
		"heartbeat":    overWire(t, wire.Heartbeat{Version: 1, Agent: "1", Nonce: []byte("nonce"), Generation: 4}),
		"envelope":     overWire(t, wire.ControlEnvelope{Version: 1, Nonce: []byte("nonce"), Now: 1, Classes: wire.Generations{"kiosk": 2}}),
		"announcement": {},
		"plan":         asMap(plan),
		"operation": asMap(interpret.Operation{APIVersion: score.APIVersion, Kind: interpret.OperationKind, ID: "5f1c", Device: "pi-7", Verb: interpret.VerbApprove, Plan: plan.ID,
			Approvals: []interpret.Approval{{Manifest: "m", Score: "x", Action: interpret.ActionDecommission, Effect: interpret.Destroy, Resources: []score.Resource{"file:/etc/x"}, SpecDigest: plan.ID}},
			Actor:     "me", Reason: "it is old", Expires: time.Unix(1e9, 0).UTC()}),
		"audit": asMap(interpret.AuditEntry{APIVersion: score.APIVersion, Kind: interpret.AuditKind, Chain: "5f1c", Sequence: 2, Previous: plan.ID, Device: "pi-7", Time: time.Unix(1e9, 0).UTC(), TimeTrusted: true,
			What: interpret.AuditDecision, Manifest: "m", Score: "x", Resources: []score.Resource{"file:/etc/x"}, Decision: interpret.DecidePending, Code: interpret.CodeConfirm}),
		"requests": asMap(interpret.ApprovalRequests{APIVersion: score.APIVersion, Kind: interpret.RequestsKind, Device: "pi-7", Generation: 2, Assignment: plan.ID, Truncated: 1, Time: time.Unix(1e9, 0).UTC(),
			Requests: []interpret.ApprovalRequest{{ID: plan.ID, Since: time.Unix(1e9, 0).UTC(), Observed: plan.ID, Action: interpret.PlannedAction{Manifest: "m", Score: "x", Kind: score.KindFile, Action: interpret.ActionDecommission,
				Decision: interpret.DecidePending, Code: interpret.CodeSignature}}}}),
		"receipt": asMap(interpret.Receipt{APIVersion: score.APIVersion, Kind: interpret.ReceiptKind, ID: "5f1c", Device: "pi-7", Verb: interpret.VerbPass, Result: interpret.ResultFailed,
			Code: interpret.CodePlanChanged, Plan: &plan, Started: time.Unix(1e9, 0).UTC(), Finished: time.Unix(1e9, 5).UTC(),
			Actions: []interpret.ReceiptAction{{Manifest: "m", Score: "x", Kind: score.KindFile, Action: interpret.ActionChange, Outcome: interpret.Changed, Diff: "-a\n+b\n"}}}),
	}
	for k, v := range wire.Announce(wire.Statement{Generation: 7, Digest: make([]byte, 32)}) {
		good["announcement"][k] = v[0]
	}
	for name, doc := range good {
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Check(name, b); err != nil {
			t.Error(err)
		}
		if name == "announcement" {
			continue
		}
		doc["colour"] = "blue"
		if b, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if err := schemas.Check(name, b); err == nil || !strings.Contains(err.Error(), "unknown field `colour`") {
			t.Errorf("%s: an unknown field gives %v", name, err)
		}
	}
	for field, name := range map[string]string{"verb": "operation", "result": "receipt", "kind": "plan"} {
		doc := maps.Clone(good[name])
		delete(doc, "colour")
		doc[field] = "pass" // a verb of receipts only
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Check(name, b); err == nil || !strings.Contains(err.Error(), "/"+field+": ") {
			t.Errorf("%s: a wrong %s gives %v", name, field, err)
		}
	}
	for what, change := range map[string]func(s *interpret.ScoreStatus){
		"outcome":               func(s *interpret.ScoreStatus) { s.Outcome = "done" },
		"state of another kind": func(s *interpret.ScoreStatus) { s.Kind = score.KindService },
		"unknown observed field": func(s *interpret.ScoreStatus) {
			s.Observed = []byte(`{"present":true,"type":"regular","colour":"blue"}`)
		},
	} {
		bad := st
		bad.Manifests = slices.Clone(st.Manifests)
		bad.Manifests[0].Scores = slices.Clone(st.Manifests[0].Scores)
		change(&bad.Manifests[0].Scores[0])
		b, err := score.Encode(bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Check("status", b); err == nil {
			t.Errorf("a status with a wrong %s is taken", what)
		}
	}
}

func manifest(t *testing.T) score.Manifest {
	m, ds := schemas.Validate("a.json", []byte(manifestOf("hostname", `{"name":"a"}`)))
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	return m
}

// overWire gives the JSON form of a struct of the protocol: its names on the wire, and
// bytes as base64.
func overWire(t *testing.T, v any) map[string]any {
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := msgpack.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range m {
		if raw, ok := v.([]byte); ok {
			m[k] = base64.StdEncoding.EncodeToString(raw)
		}
	}
	return m
}

func TestExplain(t *testing.T) {
	var got strings.Builder
	for _, path := range []string{"file", "container", "container.ports", "container.registry", "service.state", "tool.version", "firewall.allow", "ethernet.ipv4.routes", "manifest.spec.target", "manifest.spec.scores.id", "manifest.spec.policy",
		"manifest.spec.policy.brake", "manifest.spec.scores.health.readiness", "manifest.spec.scores.engine.limit", "plan.actions.decision", "operation.verb", "receipt.result", "status.state"} {
		s, err := schemas.Explain(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "$ continuo explain %s\n%s\n", path, s)
	}
	golden(t, "testdata/explain.golden", []byte(got.String()))

	for path, want := range map[string]string{
		"fiel":           `no document "fiel", did you mean "file"?`,
		"file.pth":       `file has no field "pth", did you mean "path"?`,
		"file.path.x":    `file.path has no field "x"`,
		"file.after":     "file.after stands beside the spec: continuo explain manifest.spec.scores.after",
		"":               "there are container, ",
		"file.":          "no field",
		"manifest.spec.": "manifest.spec has no field",
	} {
		if _, err := schemas.Explain(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ...%s...", path, err, want)
		}
	}
}

// TestExplainExamples: the example that is shown for a kind is valid as it is shown.
func TestExplainExamples(t *testing.T) {
	for _, k := range score.Kinds() {
		s, err := schemas.Explain(string(k.Kind))
		if err != nil {
			t.Fatal(err)
		}
		_, example, ok := strings.Cut(s, "Example:\n\n")
		if !ok {
			t.Errorf("%s: no example", k.Kind)
			continue
		}
		lines := strings.ReplaceAll("    "+strings.TrimRight(example, "\n"), "\n", "\n    ")
		text := "apiVersion: continuo/v1\nkind: Manifest\nmetadata: {name: m}\nspec:\n  target: {device: d}\n  policy: {preset: converge}\n  scores:\n    -\n" + lines + "\n"
		if _, ds := schemas.Validate("a.yaml", []byte(text)); len(ds) > 0 {
			t.Errorf("%s: %v\n%s", k.Kind, ds, text)
		}
	}
}

// TestExplainFields: every field of every kind, at any depth, is told with a description and an example. // issue 4: every field is in the schema with a description and an example
func TestExplainFields(t *testing.T) {
	for _, k := range score.Kinds() {
		root, err := schemas.Explain(string(k.Kind))
		if err != nil {
			t.Fatal(err)
		}
		explainFields(t, string(k.Kind), root)
	}
}

var fieldLine = regexp.MustCompile(`(?m)^  ([A-Za-z0-9]+): `)

func explainFields(t *testing.T, path, told string) {
	_, list, _ := strings.Cut(told, "\nFields:\n")
	list, _, _ = strings.Cut(list, "\nExample:\n")
	for _, m := range fieldLine.FindAllStringSubmatch(list, -1) {
		at := path + "." + m[1]
		s, err := schemas.Explain(at)
		switch {
		case err != nil:
			t.Errorf("%s: %v", at, err)
		case !strings.Contains(s, "\nExample:\n\n  "+m[1]+":"):
			t.Errorf("%s: no example\n%s", at, s)
		default:
			if lines := strings.Split(s, "\n"); len(lines) < 3 || lines[2] == "" {
				t.Errorf("%s: no description", at)
			}
			explainFields(t, at, s)
		}
	}
}
