package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestOperationID(t *testing.T) {
	tests := []struct {
		id string
		ok bool
	}{
		{"9f0b4c52-a4f7-4a4f-9b6b-6c113f0c2f8e", true},
		{"pass-2026.07_1", true},
		{strings.Repeat("x", 64), true},
		{"", false},
		{strings.Repeat("x", 65), false},
		{".hidden", false},
		{"-rf", false},
		{"../../etc/passwd", false},
		{"a b", false},
		{"a\r\nNats-Rollup: all", false},
		{"a\n", false},
		{"ä", false},
	}
	for _, tt := range tests {
		err := CheckOperationID(tt.id)
		if (err == nil) != tt.ok || err != nil && (!strings.HasPrefix(err.Error(), "cannot use") || strings.ContainsAny(err.Error(), "\r\n")) {
			t.Errorf("%q: %v", tt.id, err)
		}
	}
}

// The same receipt has the same message id, and one of another content, id or device has another.
func TestReceiptHeaders(t *testing.T) {
	other := Device{Site: "main", ID: "pi-2"}
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	seen := map[string]bool{}
	for _, h := range []map[string][]string{
		ReceiptHeaders(dev1, "a", "plan", one), ReceiptHeaders(dev1, "a", "plan", two),
		ReceiptHeaders(dev1, "b", "plan", one), ReceiptHeaders(other, "a", "plan", one),
	} {
		seen[first(h, headerMessageID)] = true
	}
	if len(seen) != 4 {
		t.Errorf("got %v", seen)
	}
	if id, verb := AnnouncedReceipt(ReceiptHeaders(dev1, "a", "plan", one)); id != "a" || verb != "plan" {
		t.Errorf("got %q %q", id, verb)
	}
	if id, verb := AnnouncedReceipt(nil); id != "" || verb != "" {
		t.Errorf("got %q %q", id, verb)
	}
	defer func() {
		if recover() == nil {
			t.Error("an id that was not checked became a header")
		}
	}()
	ReceiptHeaders(dev1, "a\r\nNats-Rollup: all", "plan", one)
}

// Peek reads what was signed and what was not, and nothing that is cut or damaged beyond reading.
func TestPeek(t *testing.T) {
	st := statement()
	st.Encoding = EncodingGzip
	payload := bytes.Repeat([]byte("abc"), 100)
	frame := seal(t, st, payload, "a")
	got, opened, err := Peek(frame)
	if err != nil || got.Generation != st.Generation || !bytes.Equal(opened, payload) {
		t.Errorf("got %+v, %d bytes, %v", got, len(opened), err)
	}
	for name, b := range map[string][]byte{"cut": frame[:len(frame)-1], "empty": nil, "rubbish": []byte("CTO1\x00\x05\xdd\xff\xff\xff\xff\x00")} {
		if _, _, err := Peek(b); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	st.RawSize = MaxOpened + 1
	b, err := encode(&st)
	if err != nil {
		t.Fatal(err)
	}
	bomb, err := Envelope{Statement: b, Payload: []byte("x")}.Frame()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Peek(bomb)
	wantCode(t, err, CodeTooLarge)
}
