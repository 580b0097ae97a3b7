package wire

import (
	"bytes"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// Bytes that made decoders allocate gigabytes, overflow the stack, or believe what is not so.
var hostile = []struct {
	name string
	in   []byte
	want string
}{
	{"empty", nil, "no value"},
	{"array of 4 billion", unhex("ddffffffff"), "claims more"},
	{"array of 2 billion", unhex("dd7fffffff"), "claims more"},
	{"map of 4 billion", unhex("dfffffffff"), "claims more"},
	{"map of 65535", unhex("deffff"), "claims more"},
	{"bin of 4 GB", unhex("c6ffffffff"), "claims more"},
	{"str of 4 GB", unhex("dbffffffff"), "claims more"},
	{"ext of 4 GB", unhex("c9ffffffff01"), "claims more"},
	{"bin cut short", unhex("c40561"), "claims more"},
	{"length cut short", unhex("dd7fff"), "no value"},
	{"int cut short", unhex("cf00"), "claims more"},
	{"fixext cut short", unhex("d80000"), "claims more"},
	{"unused code", unhex("c1"), "no value"},
	{"two values", unhex("0101"), "1 bytes follow"},
	{"array cut short", unhex("929101"), "no value"},
	{"map without value", unhex("81a161"), "no value"},
	{"key twice", unhex("82a16101a16102"), "appears twice"},
	{"key twice in another form", unhex("82a16101d9016102"), "appears twice"},
	{"key is a number", unhex("810102"), "no text"},
	{"key is bytes", unhex("81c4016102"), "no text"},
	{"key is a map", unhex("818001"), "no text"},
	{"deep arrays", append(bytes.Repeat([]byte{0x91}, 100), 0), "nested deeper"},
	{"deeper by one", append(bytes.Repeat([]byte{0x91}, maxDepth+1), 0), "nested deeper"},
	{"a megabyte of arrays", bytes.Repeat([]byte{0x91}, 1<<20), "nested deeper"},
	{"too many keys", manyKeys(maxMapKeys + 1), "more than"},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic("wire: " + err.Error())
	}
	return b
}

func manyKeys(n int) []byte {
	b := []byte{0xde, byte(n >> 8), byte(n)}
	for i := range n {
		b = append(b, 0xa2, byte('a'+i/26), byte('a'+i%26), 0x00)
	}
	return b
}

func TestGuardRefuses(t *testing.T) { // case 142
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			if r := guard(tt.in, 2<<20); r == nil || r.Code != CodeMalformed || !strings.Contains(r.Detail, tt.want) {
				t.Fatalf("got %v, want %s", r, tt.want)
			}
			if _, err := DecodeHeartbeat(tt.in); err == nil {
				t.Error("it was decoded as a heartbeat")
			}
		})
	}
	if err := guard(make([]byte, 11), 10); err == nil || err.Code != CodeTooLarge {
		t.Errorf("more than the limit: %v", err)
	}
}

func TestGuardAdmits(t *testing.T) {
	for _, s := range []string{
		"00", "7f", "e0", "c0", "c2", "c3", "80", "90", "a0", "cc01", "cd0001", "ce00000001", "cf0000000000000001", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff",
		"ca00000000", "cb0000000000000000", "c400", "c50000", "c600000000", "d900", "da0000", "db00000000", "dc0000", "dd00000000", "de0000", "df00000000",
		"c70001", "c8000001", "c90000000001", "d40100", "d5010000", "d60100000000", "d7010000000000000000", "d80100000000000000000000000000000000",
		"82a16101a16202", "9281a1610181a16101", "81a16181a16101", "93909090", "929191909180",
	} {
		if err := guard(unhex(s), 100); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := guard(append(bytes.Repeat([]byte{0x91}, maxDepth), 0), 100); err != nil {
		t.Errorf("as deep as allowed: %v", err)
	}
	if err := guard(manyKeys(maxMapKeys), 1<<20); err != nil {
		t.Errorf("as many keys as allowed: %v", err)
	}
}

// The five hostile bytes cost no memory: not in the guard, not in any decoder.
func TestHostileBytesDoNotAllocate(t *testing.T) {
	in := unhex("ddffffffff")
	for name, f := range map[string]func(){
		"guard":           func() { _ = guard(in, 100) },
		"Statement":       func() { _, _ = decode[Statement](in, 100) },
		"Heartbeat":       func() { _, _ = DecodeHeartbeat(in) },
		"ControlEnvelope": func() { _, _ = decode[ControlEnvelope](in, 100) },
	} {
		const runs = 100
		if got := allocated(func() {
			for range runs {
				f()
			}
		}) / runs; got > 2<<10 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}

// allocated is how many bytes f allocated, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A map's keys say nothing about the next map at the same depth.
func TestGuardForgetsKeysOfSiblings(t *testing.T) {
	// [{"a":1,"b":2},{"b":1,"a":2,"c":{"a":1}}]
	if err := guard(unhex("9282a16101a1620283a16201a16102a16381a16101"), 100); err != nil {
		t.Error(err)
	}
	if err := guard(unhex("9281a1610182a16201a16202"), 100); err == nil {
		t.Error("a key twice in the second map was admitted")
	}
}

// What the guard admits, the library decodes without a panic, and in memory of the order of the input.
func FuzzGuard(f *testing.F) {
	for _, tt := range hostile {
		if len(tt.in) < 1000 {
			f.Add(tt.in)
		}
	}
	for _, s := range []string{"82a16101a16202", "9281a1610181a16101", "c70001", "d6ff00000000", "cb0000000000000000"} {
		f.Add(unhex(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 64 << 10
		if guard(b, limit) != nil {
			return
		}
		d := msgpack.NewDecoder(bytes.NewReader(b))
		// the library knows less ext types than the format, and may refuse what the guard lets pass
		if err := d.Skip(); err == nil && d.Buffered().(*bytes.Reader).Len() != 0 {
			t.Errorf("%x: bytes are left after one value", b)
		}
		// An element of one byte may become a whole struct, doubled while the list grows; nothing may become more.
		if got, most := allocated(func() {
			for _, into := range []any{new(any), new([]Statement), new([]string), new([]byte), new(map[string]uint64)} {
				_ = msgpack.Unmarshal(b, into)
			}
		}), uint64(64<<10+2000*len(b)); got > most {
			t.Errorf("%d bytes of input allocated %d", len(b), got)
		}
	})
}
