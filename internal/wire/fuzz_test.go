package wire

import (
	"bytes"
	"testing"
)

func FuzzVerify(f *testing.F) {
	keys := keySet(f, "a", KindDevice)
	st := statement()
	good := seal(f, st, []byte(`{"a":1}`), "a")
	f.Add(good)
	st.Encoding = EncodingGzip
	f.Add(seal(f, st, bytes.Repeat([]byte("a"), 1000), "a"))
	f.Add([]byte("CTO1\x00\x05\xdd\xff\xff\xff\xff\x00"))
	f.Add([]byte("CTO2"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseFrame(b)
		if err != nil {
			return
		}
		if again, err := e.Frame(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("the frame is not what it was taken from: %v", err)
		}
		if st, payload, err := Peek(b); err == nil && (uint64(len(payload)) != st.RawSize && st.Encoding != EncodingNone || len(payload) > MaxOpened) {
			t.Fatalf("peeked at %d bytes, %d were said", len(payload), st.RawSize)
		}
		if v, err := Verify(b, keys, expect); err == nil && v.Statement.Generation != statement().Generation {
			t.Fatalf("something that was never signed was accepted: %+v", v)
		}
		// The statement as if somebody trusted had signed it.
		if st, err := decode[Statement](e.Statement, MaxStatement); err == nil {
			v := Verified{Statement: st, payload: e.Payload}
			if v.Statement.RawSize <= MaxOpened && v.Statement.Encoding == EncodingGzip {
				if opened, err := v.Open(); err == nil && uint64(len(opened)) != st.RawSize {
					t.Fatalf("opened to %d bytes, %d were said", len(opened), st.RawSize)
				}
			}
			_ = st.valid(now)
		}
	})
}

func FuzzHeartbeat(f *testing.F) {
	b, err := heartbeat().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, tt := range hostile {
		if len(tt.in) < 1000 {
			f.Add(tt.in)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeartbeat(b)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil {
			return // a nonce or a digest longer than an agent writes
		}
		if _, err := DecodeHeartbeat(again); err != nil || len(again) > MaxHeartbeat {
			t.Fatalf("what was decoded does not encode: %d bytes, %v", len(again), err)
		}
	})
}

func FuzzControl(f *testing.F) {
	c := control()
	b, err := encode(&c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(unhex("82a17601a7636c617373657381a16101"))
	for _, tt := range hostile {
		if len(tt.in) < 1000 {
			f.Add(tt.in)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode[ControlEnvelope](b, maxControl)
		if err != nil {
			return
		}
		first, err := encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode[ControlEnvelope](first, 2*maxControl)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := encode(&again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("one value has two encodings: %x, %x, %v", first, second, err)
		}
		for _, bound := range []Bound{HeartbeatBound, PollBound, ReconnectBound} {
			if d := bound.Clamp(c.Interval); d < bound.Min || d > bound.Max {
				t.Fatalf("%s is out of bounds", d)
			}
		}
		_ = c.Time()
	})
}

func FuzzDSSE(f *testing.F) {
	e, err := SealEnvelope(statement(), []byte(`{"a":1}`), signer(f, 'a'))
	if err != nil {
		f.Fatal(err)
	}
	file, err := e.DSSE()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte(`{"payloadType":"` + StatementType + `","payload":"3f////8=","signatures":[]}`))
	f.Add([]byte(`{}`))
	keys := keySet(f, "a", KindDevice)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseDSSE(b)
		if err != nil {
			return
		}
		frame, err := e.Frame()
		if err != nil {
			t.Fatalf("what was read cannot be sent: %v", err)
		}
		if back, err := ParseFrame(frame); err != nil || !bytes.Equal(back.Statement, e.Statement) || !bytes.Equal(back.Payload, e.Payload) {
			t.Fatalf("the frame is not the file: %v", err)
		}
		if v, err := e.Verify(keys, expect); err == nil && v.Statement.Generation != statement().Generation {
			t.Fatalf("something that was never signed was accepted: %+v", v)
		}
	})
}
