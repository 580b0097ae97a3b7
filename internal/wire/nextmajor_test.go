package wire

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What a later major version sends is told from rubbish: it is unsupported, and every device in the field has to say so
// for ever. The files in testdata/wire/v2 are what such a version may send; they are never edited (H29).
func TestNextMajorIsUnsupported(t *testing.T) {
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dsse := bytes.Replace(golden(t, "two-keys.dsse.json"), []byte("statement.v1+msgpack"), []byte("statement.v2+msgpack"), 1)
	made := map[string][]byte{
		"device.envelope":    append([]byte("CTO2"), golden(t, "device.envelope")[4:]...),
		"two-keys.dsse.json": dsse,
		"heartbeat.msgpack":  must(encode(&Heartbeat{Version: ProtocolVersion + 1, Agent: "2.0.0"})),
		"control.envelope": seal(t, Statement{Kind: KindHeartbeat, Audience: dev1.String(), Generation: 1, Media: MediaControl},
			must(encode(&ControlEnvelope{Version: ProtocolVersion + 1, Generation: 9})), "h"),
	}
	read := func(name string) []byte {
		t.Helper()
		path := filepath.Join("testdata", "wire", "v2", name)
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			must(nil, os.MkdirAll(filepath.Dir(path), 0o755))
			must(nil, os.WriteFile(path, made[name], 0o644))
		}
		return must(os.ReadFile(path))
	}
	_, err := Verify(read("device.envelope"), keySet(t, "a", KindDevice), expect)
	wantCode(t, err, CodeUnsupportedVersion)
	_, err = ParseDSSE(read("two-keys.dsse.json"))
	wantCode(t, err, CodeUnsupportedVersion)
	_, err = DecodeHeartbeat(read("heartbeat.msgpack"))
	wantCode(t, err, CodeUnsupportedVersion)
	_, err = OpenControl(read("control.envelope"), keySet(t, "h", KindHeartbeat), dev1, nil)
	wantCode(t, err, CodeUnsupportedVersion)
}
