package wire

import (
	"bytes"
	"slices"
	"testing"
)

// Operations come apart as they were put together, one alone is stored as it is, and what is cut, longer or too much is refused.
func TestOperationsTogether(t *testing.T) {
	one, two, empty := []byte("CTO1 one"), []byte("CTO1 the second"), []byte{}
	for _, frames := range [][][]byte{{one}, {one, two}, {two, empty, one}, slices.Repeat([][]byte{one}, MaxOperations)} {
		b, err := JoinOperations(frames...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := SplitOperations(b)
		if err != nil || !slices.EqualFunc(got, frames, bytes.Equal) {
			t.Errorf("%q, %v", got, err)
		}
		if len(frames) == 1 && !bytes.Equal(b, one) {
			t.Errorf("one alone is %q", b)
		}
		for i := len(bundleMagic); len(frames) > 1 && i < len(b); i++ {
			_, err := SplitOperations(b[:i])
			wantCode(t, err, CodeMalformed)
		}
		if len(frames) > 1 {
			_, err := SplitOperations(append(b, 0))
			wantCode(t, err, CodeMalformed)
		}
	}
	for _, frames := range [][][]byte{{}, slices.Repeat([][]byte{one}, MaxOperations+1), {one, make([]byte, maxBundle)}} {
		if _, err := JoinOperations(frames...); err == nil {
			t.Errorf("%d were put together", len(frames))
		}
	}
	_, err := SplitOperations(append([]byte(bundleMagic), make([]byte, maxBundle)...))
	wantCode(t, err, CodeTooLarge)
}

func FuzzSplitOperations(f *testing.F) {
	b, err := JoinOperations([]byte("a"), []byte("bc"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("CTB1\x03"))
	f.Add([]byte("CTB1\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := SplitOperations(b)
		if err != nil {
			return
		}
		if again, err := JoinOperations(frames...); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q came apart into %q", b, frames)
		}
	})
}
