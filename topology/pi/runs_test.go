package pi

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/topology"
)

// FuzzRunRecord: whatever is in the file, what is read of it has bounds and is text.
func FuzzRunRecord(f *testing.F) {
	f.Add([]byte(`{"digest":"d","boot":"b","result":"success","exitCode":0,"output":"a\nb"}`))
	f.Add([]byte(`{"digest":"d","result":"\ud800","output":"\u001b[31m"}`))
	f.Add([]byte(`{"digest":1}`))
	f.Add([]byte(`damaged`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := decodeRun(in)
		if len(r.Digest) > 128 || len(r.Result) > 256 || len(r.Output) > topology.LogBytes || !utf8.ValidString(r.Output) || !utf8.ValidString(r.Result) {
			t.Errorf("%q is read as %+v", in, r)
		}
	})
}

// A look at a unit that goes on failing starts no process for each run of it.
func TestJournalIsAskedOnce(t *testing.T) {
	j := newJournal()
	j.last["/a.service"] = excerpt{"1", "words of run 1", time.Now()}
	for _, tt := range []struct{ invocation, want string }{{"1", "words of run 1"}, {"2", ""}} {
		if got, err := j.of(t.Context(), "/a.service", tt.invocation); err != nil || got != tt.want {
			t.Errorf("of run %s: %q, %v", tt.invocation, got, err)
		}
	}
	j.last["/a.service"] = excerpt{"1", "", time.Now()} // it may not be written yet, and is asked for again soon, not at once
	if got, err := j.of(t.Context(), "/a.service", "1"); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNamesOfUnits(t *testing.T) { // cases 61, 66
	d, err := Open(t.Context(), Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, bad := range []string{"../x.service", "/x.service", "1000/x.service", "pi/../x.service", "pi//x.service", "a b/x.service", "-pi/x.service"} {
		_, err := d.Services().Service(t.Context(), bad)
		if code := topology.FaultOf(err).Code; err == nil || code != topology.CodeInvalid && code != topology.CodeUnavailable {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// Of what a process says the end is kept, however long its lines are and however it comes.
func TestTail(t *testing.T) {
	for _, size := range []int{0, 1, 9, 10, 11, 19, 20, 21, 1000} {
		in := make([]byte, size)
		for i := range in {
			in[i] = byte(i)
		}
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(in), "byte by byte": iotest.OneByteReader(bytes.NewReader(in))} {
			got, err := tail(r, 10)
			if err != nil || len(got) < min(10, size) || len(got) > 20 || !bytes.HasSuffix(in, got) {
				t.Errorf("%s: of %d bytes %d are kept, %v", name, size, len(got), err)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := tail(iotest.ErrReader(broken), 10); err != broken {
		t.Errorf("got %v", err)
	}
}
