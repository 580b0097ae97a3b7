package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A field that this version does not know stays what was signed, from frame to file and back.
func TestUnknownStatementFieldSurvives(t *testing.T) { // S27, S28, H29
	e, err := SealEnvelope(statement(), []byte("x"), signer(t, 'a'))
	if err != nil {
		t.Fatal(err)
	}
	e.Statement = append([]byte{e.Statement[0] + 1}, e.Statement[1:]...)
	e.Statement = append(e.Statement, unhex("a66675747572659201c0")...) // "future": [1, nil]
	b := framed(t, e)
	v, err := Verify(b, keySet(t, "a", KindDevice), expect)
	if err != nil || v.Statement.Generation != 7 {
		t.Fatalf("%+v, %v", v, err)
	}
	parsed, err := ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parsed.DSSE()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseDSSE(file)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.Frame(); err != nil || !bytes.Equal(again, b) {
		t.Errorf("the frame is not the same after a DSSE file: %v", err)
	}
}

func TestDSSE(t *testing.T) {
	e, err := SealEnvelope(statement(), []byte(`{"a":1}`), signer(t, 'a'), signer(t, 'b'))
	if err != nil {
		t.Fatal(err)
	}
	file, err := e.DSSE()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseDSSE(file)
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Fatalf("got %+v, %v", back, err)
	}
	if _, err := back.Verify(keySet(t, "ab", KindDevice), expect); err != nil {
		t.Error(err)
	}
	edit := func(f func(map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(file, &m); err != nil {
			t.Fatal(err)
		}
		f(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := func(m map[string]any) map[string]any { return m["signatures"].([]any)[0].(map[string]any) }
	tests := []struct {
		name string
		in   []byte
		want Code
	}{
		{"nothing", nil, CodeMalformed},
		{"array", []byte("[]"), CodeMalformed},
		{"two files", append(slices.Clone(file), file...), CodeMalformed},
		{"too large", bytes.Repeat([]byte{' '}, maxDSSE+1), CodeTooLarge},
		{"another type", edit(func(m map[string]any) { m["payloadType"] = "application/vnd.continuo.statement.v2+msgpack" }), CodeUnsupportedVersion},
		{"statement is no base64", edit(func(m map[string]any) { m["payload"] = "!" }), CodeMalformed},
		{"key id is no hex", edit(func(m map[string]any) { first(m)["keyid"] = "xx" }), CodeMalformed},
		{"key id too long", edit(func(m map[string]any) { first(m)["keyid"] = strings.Repeat("a", 64) }), CodeMalformed},
		{"short signature", edit(func(m map[string]any) { first(m)["sig"] = "AAAA" }), CodeMalformed},
		{"9 signatures", edit(func(m map[string]any) { // counted before anything is made of them
			m["signatures"] = slices.Repeat(m["signatures"].([]any)[:1], 9)
		}), CodeTooLarge},
		{"long statement", edit(func(m map[string]any) { m["payload"] = make([]byte, MaxStatement+1) }), CodeTooLarge},
		{"long payload", edit(func(m map[string]any) { m["document"] = make([]byte, MaxPayload+1) }), CodeTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseDSSE(tt.in)
			wantCode(t, err, tt.want)
		})
	}
	// Fields of later versions of the standard are ignored.
	if _, err := ParseDSSE(edit(func(m map[string]any) { m["timestamp"] = 1 })); err != nil {
		t.Error(err)
	}
}

// The pre-authentication encoding is DSSE's, byte by byte, so that other tools can check a file.
func TestPreAuth(t *testing.T) {
	want := fmt.Sprintf("DSSEv1 %d %s %d %s", len(StatementType), StatementType, 5, "hello")
	if got := string(preAuth([]byte("hello"))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
