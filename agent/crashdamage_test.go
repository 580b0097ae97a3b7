package agent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// damages are what may become of a file; nil: it is gone.
var damages = map[string]func([]byte) []byte{
	"gone":           func([]byte) []byte { return nil },
	"empty":          func([]byte) []byte { return []byte{} },
	"one byte":       func(b []byte) []byte { return b[:1] },
	"a part of head": func(b []byte) []byte { return b[:min(20, len(b)-1)] },
	"head":           func(b []byte) []byte { return b[:min(40, len(b)-1)] },
	"half":           func(b []byte) []byte { return b[:len(b)/2] },
	"all but one":    func(b []byte) []byte { return b[:len(b)-1] },
	"zeros":          func(b []byte) []byte { return make([]byte, len(b)) },
	"zeros at end":   func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-min(9, len(b))]), make([]byte, 9)...) },
	"something else": func([]byte) []byte { return []byte("this is no file of yours\n") },
	"bit in head":    func(b []byte) []byte { return flipped(b, min(17, len(b)-1)) },
	"bit in middle":  func(b []byte) []byte { return flipped(b, len(b)/2) },
	"bit at end":     func(b []byte) []byte { return flipped(b, len(b)-1) },
}

func flipped(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 4
	return b
}

// old is an operation of the story, which is long over.
var old = interpret.Operation{ID: "op-1", Verb: interpret.VerbAdopt, Manifest: "f"}

// aged is a world at the end of its story, when all that was asked has expired.
func aged(t *testing.T) *world {
	w := newWorld(t, store.LoseNothing)
	w.story()
	w.first = w.answer(old.ID)
	old := old
	old.Expires = time.Now().Add(-time.Minute)
	w.asked = old
	return w
}

// whole is what must be so whatever becomes of the books: all that is wanted is there and owned, and what others made.
func (w *world) whole() string {
	var b strings.Builder
	for _, p := range w.dev.List("/") {
		if c, _ := w.dev.Read(p); !strings.Contains(p, "/r.") && !strings.Contains(p, "/extra") {
			fmt.Fprintf(&b, "%s %q\n", p, c)
		}
	}
	past := []string{"gone", "old", "ends"} // books that were cut may know again what was collected since
	for _, e := range w.store.Entries() {
		if slices.Contains(past, e.Score) {
			continue
		}
		if e.Manifest != "r" && e.Manifest != "f" && e.Resource != "hostname" { // a host name can carry no mark
			fmt.Fprintf(&b, "%s %s/%s\n", e.Resource, e.Manifest, e.Score)
		}
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// survives checks that an agent whose books were damaged has done no harm, and says what it found. Only what rolls back may
// have been tried once more, if the books do not know any longer that it was.
func (w *world) survives(rec *memory.Recorder, want string) {
	w.t.Helper()
	for _, c := range rec.Mutations() {
		switch c.Resource {
		case "file:/etc/r.conf", "unit:r.service", "file:/etc/extra":
		default:
			w.t.Errorf("it did %s", fmt.Sprint(c))
		}
	}
	if got := w.whole(); got != want {
		w.t.Errorf("findings %v:\n%s", w.lost.Findings, diff(want, got))
	}
	said := slices.ContainsFunc(w.last.Problems, func(p interpret.Problem) bool { return p.Code == agent.CodeRecovered })
	if len(w.lost.Findings) > 0 && !said {
		w.t.Errorf("nothing is said of %v: %v", w.lost.Findings, w.last.Problems)
	}
	switch r := w.answer(old.ID); {
	case r.Result == interpret.ResultDone && r.Finished == w.first.Finished:
	case r.Result == interpret.ResultInterrupted, r.Code == "expired", r.Code == agent.CodeOperationReused:
	default:
		w.t.Errorf("what expired long ago is %s %s", r.Result, r.Code)
	}
}

// ownsForeign reports whether the file that was given up is owned: it carries a mark.
func (w *world) ownsForeign() bool {
	_, owned := w.store.Owner("file:/etc/motd")
	return owned
}

// Every file of the books is damaged in every way, while the agent is off and while it runs: the next one starts, says what
// it found, knows from the marks what is its own, touches and removes nothing, and does nothing that has expired; and what is
// no longer wanted is still collected (cases 122, 123, S23).
func TestDamagedBooks(t *testing.T) {
	var n, found atomic.Int64
	t.Run("damage", func(t *testing.T) {
		for kind, damage := range damages {
			for _, running := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, " ", running), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						w := aged(t)
						want := w.whole()
						for _, name := range slices.Sorted(maps.Keys(w.rig.disk.Files())) {
							content := w.rig.disk.Files()[name]
							if len(content) == 0 {
								continue
							}
							rec, was := w.dev.Record(), w.ownsForeign()
							if running {
								w.rig.disk.Put(name, damage(content))
								w.settle()
							}
							w.kill()
							w.stop()
							if !running {
								w.rig.disk.Put(name, damage(content))
							}
							w.rest(3 * w.pace)
							w.survives(rec, want)
							if ledger := strings.HasPrefix(name, "ledger") || strings.HasPrefix(name, "journal"); !ledger && !was && w.ownsForeign() {
								t.Error("what was given up is owned again")
							}
							n.Add(1)
							if len(w.lost.Findings) > 0 {
								found.Add(1)
							}
							if t.Failed() {
								t.Fatalf("%s of %s", kind, name)
							}
						}
						w.collects()
					})
				})
			}
		}
	})
	t.Logf("%d damages, %d of them noticed", n.Load(), found.Load())
	if n.Load() < 300 || found.Load() < 60 {
		t.Errorf("%d damages, %d noticed", n.Load(), found.Load())
	}
}

// collects publishes without one file, which goes, and nothing else does.
func (w *world) collects() {
	w.t.Helper()
	in := edition(4).Assignment
	ms := in.Spec.Manifests
	ms[0].Spec.Scores = slices.DeleteFunc(slices.Clone(ms[0].Spec.Scores), func(s score.Score) bool { return s.ID == "db" })
	ms[2] = version(5, edition(1).Assignment.Spec.Manifests[2]) // what rolls back is mended
	w.publish(intent(5, ms...))
	w.rest(3 * w.pace)
	if st, err := w.dev.Containers().Container(context.Background(), "base"); err != nil || st.State != "absent" {
		w.t.Errorf("what is no longer wanted is %s: %v\n%s", st.State, w.last.Orphans, outcomes(w.last))
	}
	w.content("/srv/theirs", "precious")
	w.content("/etc/motd", "ours")
}

// All of the directory goes at once, while the agent is off and while it runs.
func TestBooksGo(t *testing.T) {
	for _, running := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := aged(t)
			want := w.whole()
			rec := w.dev.Record()
			w.kill()
			w.stop()
			for name := range w.rig.disk.Files() {
				w.rig.disk.Put(name, nil)
			}
			if running {
				w.rest(w.pace * 4 / 3)
				w.rig.disk.RemoveAll()
			}
			w.rest(3 * w.pace)
			w.survives(rec, want)
			w.collects()
		})
	}
}

// Files of a newer version: the device is looked at, and nothing is done, whatever is asked (cases 130).
func TestNewerBooks(t *testing.T) {
	files := 0
	for _, name := range []string{"ledger.0", "ledger.1", "journal.0", "journal.1", "intent/device.0", "intent/device.1", "good/r.0"} {
		bubble(t, func(t *testing.T) {
			w := aged(t)
			content, ok := w.rig.disk.Files()[name]
			if !ok {
				return
			}
			files++
			binary.LittleEndian.PutUint32(content[8:], binary.LittleEndian.Uint32(content[8:])+1)
			binary.LittleEndian.PutUint32(content[36:], crc32.Checksum(content[:36], crc32.MakeTable(crc32.Castagnoli)))
			w.kill()
			w.stop()
			w.rig.disk.Put(name, content)
			rec := w.dev.Record()
			w.rest(w.pace * 4 / 3)
			before := w.rig.disk.Files()
			w.dev.Put("/srv/a", "drift")
			_ = w.h.Offer(edition(2))
			_ = w.h.Operation(interpret.Operation{ID: "op-x", Verb: interpret.VerbRelease, Manifest: "m", Expires: time.Now().Add(time.Hour)}, "x")
			w.rest(w.pace * 4 / 3)
			if !w.lost.Newer {
				t.Fatalf("%s: %v", name, w.lost.Findings)
			}
			if n := rec.Mutations(); len(n) > 0 {
				t.Errorf("%s: it did %v", name, n)
			}
			for file, b := range w.rig.disk.Files() {
				if !bytes.Equal(before[file], b) {
					t.Errorf("%s: it altered %s", name, file)
				}
			}
			if !slices.ContainsFunc(w.last.Problems, func(p interpret.Problem) bool { return p.Code == agent.CodeNewerState }) {
				t.Errorf("%s: it says %v", name, w.last.Problems)
			}
		})
	}
	if files < 4 {
		t.Errorf("%d files only", files)
	}
}

// A version that failed is not tried again because the good one before it was lost: all stays as it is until a person says
// what to do.
func TestGoodVersionIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := aged(t)
		w.kill()
		w.stop()
		w.rig.disk.Put("good/r.0", []byte{})
		rec := w.dev.Record()
		w.rest(3 * w.pace)
		if n := rec.Mutations(); len(n) > 0 {
			t.Errorf("it did %v", n)
		}
		w.content("/etc/r.conf", "1")
		if s, _ := scoreOf(w.last, "r", "rapp"); w.last.State != interpret.StatePending || s.Outcome.Converged() {
			t.Errorf("it is %s: %s", w.last.State, outcomes(w.last))
		}
		w.collects()
		w.content("/etc/r.conf", "1")
	})
}
