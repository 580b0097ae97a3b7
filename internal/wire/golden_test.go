package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Files in testdata/wire/v1 are what was sent once. They are added to, never edited: a program of today must read what
// one of then wrote, and write the same.
var update = flag.Bool("update", false, "write golden files that are missing; an existing one is only replaced when it is deleted first")

// goldens are the bytes that the encoder writes for fixed values and fixed keys.
func goldens(t *testing.T) map[string][]byte {
	t.Helper()
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	payload := []byte(`{"apiVersion":"continuo/v1","kind":"Manifest"}` + "\n")
	device := must(Seal(statement(), payload, signer(t, 'a')))
	rotation := must(Seal(statement(), payload, signer(t, 'a'), signer(t, 'b')))
	e, err := ParseFrame(rotation)
	if err != nil {
		t.Fatal(err)
	}
	compressed := statement()
	compressed.Encoding = EncodingGzip
	c, second, first := control(), controlV2(), controlV1()
	approval := Statement{
		Kind: KindApproval, Audience: dev1.String(), Name: "plan", Generation: UnixSeconds(now) * 1000, Issued: UnixSeconds(now),
		NotAfter: UnixSeconds(now.Add(time.Hour)), Media: MediaOperation,
	}
	return map[string][]byte{
		"device.envelope":          device,
		"two-keys.envelope":        rotation,
		"two-keys.dsse.json":       must(e.DSSE()),
		"compressed.envelope":      must(Seal(compressed, bytes.Repeat(payload, 20), signer(t, 'a'))),
		"control.envelope":         must(SealControl(first, dev1, signer(t, 'h'))),
		"control-2.envelope":       must(SealControl(second, dev1, signer(t, 'h'))),
		"control-3.envelope":       must(SealControl(c, dev1, signer(t, 'h'))),
		"approval.envelope":        must(Seal(approval, []byte(operation), signer(t, 'a'))),
		"receipt.headers.json":     must(json.Marshal(ReceiptHeaders(dev1, "9f0b4c52-a4f7-4a4f-9b6b-6c113f0c2f8e", "plan", bytes.Repeat([]byte{5}, 32)))),
		"heartbeat.msgpack":        must(heartbeatV1().Encode()),
		"heartbeat-2.msgpack":      must(heartbeat().Encode()),
		"heartbeat-empty.msgpack":  must(Heartbeat{}.Encode()),
		"control.msgpack":          must(encode(&first)),
		"control-2.msgpack":        must(encode(&second)),
		"control-3.msgpack":        must(encode(&c)),
		"statement-full.msgpack":   must(encode(fullStatement())),
		"statement-sparse.msgpack": must(encode(&Statement{Kind: KindClass, Audience: "edge", Generation: 1})),
		"fields.txt":               []byte(strings.Join(wireFields(), "\n") + "\n"),
	}
}

// controlV1 is a control envelope as it was before it told the generation of the last operation.
func controlV1() ControlEnvelope {
	c := controlV2()
	c.Operation = 0
	return c
}

// controlV2 is one as it was before it told of others that report under the same name.
func controlV2() ControlEnvelope {
	c := control()
	c.Conflict = ""
	return c
}

// heartbeatV1 is a heartbeat as it was before it told the board.
func heartbeatV1() Heartbeat {
	h := heartbeat()
	h.Serial = ""
	return h
}

// operation is the document in approval.envelope.
const operation = `{"apiVersion":"continuo/v1","kind":"Operation","id":"9f0b4c52-a4f7-4a4f-9b6b-6c113f0c2f8e","device":"pi-1","verb":"plan","expires":"2026-11-29T13:00:00Z"}`

func fullStatement() *Statement {
	return &Statement{
		Kind: KindApproval, Audience: dev1.String(), Name: "kiosk", Generation: 1 << 40, Epoch: 3, Issued: 1, NotBefore: 2, NotAfter: 3,
		Digest: bytes.Repeat([]byte{4}, 32), Size: 5, RawSize: 300, Encoding: EncodingGzip, Media: "application/json",
	}
}

// wireFields lists every field that travels, with its type.
func wireFields() []string {
	var lines []string
	for _, t := range protocol {
		for i := range t.NumField() {
			f := t.Field(i)
			optional := ""
			if strings.HasSuffix(f.Tag.Get("msgpack"), ",omitempty") {
				optional = " optional"
			}
			lines = append(lines, fmt.Sprintf("%s.%s %s%s", t.Name(), wireName(f), f.Type.Kind(), optional))
		}
	}
	return lines
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "wire", "v1", name))
	if err != nil {
		t.Fatalf("%v (write it with: go test ./internal/wire -run Golden -update)", err)
	}
	return b
}

func TestGoldenBytes(t *testing.T) { // S07, S09, H29
	for name, got := range goldens(t) {
		path := filepath.Join("testdata", "wire", "v1", name)
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := golden(t, name)
		switch name {
		case "compressed.envelope":
			continue // another release of the compressor may write other bytes; TestGoldenDecodes reads these
		case "fields.txt":
			continue // TestGoldenFields says which field
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the encoder writes other bytes\n got %x\nwant %x", name, got, want)
		}
	}
}

// A field that is added, removed, renamed or given another type shows up here by its name.
func TestGoldenFields(t *testing.T) { // S44
	for _, problem := range compareFields(wireFields(), strings.Split(strings.TrimSpace(string(golden(t, "fields.txt"))), "\n")) {
		t.Error(problem)
	}
}

func compareFields(got, want []string) (problems []string) {
	missing := map[string]bool{}
	for _, line := range want {
		missing[line] = true
	}
	for _, line := range got {
		if !missing[line] {
			problems = append(problems, "field "+line+" travels, and no golden file says so: add it to fields.txt and give it a golden")
		}
		delete(missing, line)
	}
	for _, line := range want {
		if missing[line] {
			problems = append(problems, "field "+line+" does not travel any more: other versions still send or expect it")
		}
	}
	return problems
}

func TestCompareFieldsNamesTheField(t *testing.T) { // S44
	base := wireFields()
	added := append(slices.Clone(base), "Heartbeat.extra string")
	for name, tt := range map[string]struct {
		got, want []string
		names     string
	}{
		"added":   {added, base, "Heartbeat.extra string travels"},
		"removed": {base[1:], base, base[0] + " does not travel"},
	} {
		problems := compareFields(tt.got, tt.want)
		if len(problems) != 1 || !strings.Contains(problems[0], tt.names) {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

// Every golden value sets every field, so that a field which is encoded in another way is noticed.
func TestGoldenValuesAreFull(t *testing.T) {
	for _, v := range []any{*fullStatement(), heartbeat(), control()} {
		for i, rv := 0, reflect.ValueOf(v); i < rv.NumField(); i++ {
			if rv.Field(i).IsZero() {
				t.Errorf("the golden %T leaves %s zero", v, rv.Type().Field(i).Name)
			}
		}
	}
}

func TestGoldenDecodes(t *testing.T) { // H29, S09
	keys := keySet(t, "ab", KindDevice)
	for _, name := range []string{"device.envelope", "two-keys.envelope", "compressed.envelope"} {
		v, err := Verify(golden(t, name), keys, expect)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		payload, err := v.Open()
		if err != nil || !bytes.HasPrefix(payload, []byte(`{"apiVersion":"continuo/v1","kind":"Manifest"`)) || v.Statement.Name != "kiosk" {
			t.Errorf("%s: %+v %q, %v", name, v, payload, err)
		}
	}
	file, err := ParseDSSE(golden(t, "two-keys.dsse.json"))
	if err != nil {
		t.Fatal(err)
	}
	if frame, err := file.Frame(); err != nil || !bytes.Equal(frame, golden(t, "two-keys.envelope")) {
		t.Errorf("the DSSE file is not the envelope: %v", err)
	}
	if h, err := DecodeHeartbeat(golden(t, "heartbeat-2.msgpack")); err != nil || !reflect.DeepEqual(h, heartbeat()) {
		t.Errorf("heartbeat: %+v, %v", h, err)
	}
	if h, err := DecodeHeartbeat(golden(t, "heartbeat.msgpack")); err != nil || !reflect.DeepEqual(h, heartbeatV1()) {
		t.Errorf("heartbeat: %+v, %v", h, err)
	}
	for name, want := range map[string]ControlEnvelope{"control.envelope": controlV1(), "control-2.envelope": controlV2(), "control-3.envelope": control()} {
		if c, err := OpenControl(golden(t, name), keySet(t, "h", KindHeartbeat), dev1, want.Nonce); err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	v, err := Verify(golden(t, "approval.envelope"), keySet(t, "a", KindApproval), Expect{Kind: KindApproval, Audience: dev1.String(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if payload, err := v.Open(); err != nil || string(payload) != operation || v.Statement.Media != MediaOperation {
		t.Errorf("approval: %+v %q, %v", v, payload, err)
	}
	// Whoever may sign what devices should be does not sign what is asked of them, unless a receiver says so.
	_, err = Verify(golden(t, "approval.envelope"), keySet(t, "a", KindDevice), Expect{Kind: KindApproval, Audience: dev1.String(), Now: now})
	wantCode(t, err, CodeUntrusted)
	if st, err := decode[Statement](golden(t, "statement-full.msgpack"), MaxStatement); err != nil || !reflect.DeepEqual(st, *fullStatement()) {
		t.Errorf("statement: %+v, %v", st, err)
	}
}
