package natslink

import "testing"

// Whatever comes back, it says that something was stored, or why not, or it leaves that open.
func FuzzAck(f *testing.F) {
	f.Add([]byte(`{"stream":"ACTUAL","seq":7}`))
	f.Add([]byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}}`))
	f.Add([]byte(`{"seq":-1}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := readAck(b); err == nil && a.Error == nil && a.Sequence == 0 {
			t.Fatalf("%q says nothing, and is read as %+v", b, a)
		}
	})
}
