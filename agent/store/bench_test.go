package store

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// big is an entry with a spec of a file of 1 KiB.
func big(i int) Entry {
	name := fmt.Sprintf("f%04d", i)
	return Entry{
		Resource: "file:/etc/app/" + name, Manifest: "thousand", Score: name, Kind: "file", Generation: 1, Provenance: Created,
		Spec:       json.RawMessage(fmt.Sprintf(`{"path":"/etc/app/%s","content":"%s","mode":"0644"}`, name, strings.Repeat("x", 1024))),
		SpecDigest: "sha256:" + strings.Repeat("0123456789abcdef", 4),
	}
}

// cpu is what the process has used, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func perOp(b *testing.B, before time.Duration, ops int) {
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(ops), "cpu-µs/op")
}

func benchOpen(b *testing.B, fs FS) *Store {
	s, _, err := Open(fs, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkAction is begin and end of one action with a spec of 1 KiB, on a
// ledger that grows to 1,000. Two syncs; BenchmarkSync is their floor.
func BenchmarkAction(b *testing.B) {
	for name, fs := range map[string]FS{"dir": Dir(filepath.Join(b.TempDir(), "state")), "mem": NewMem()} {
		b.Run(name, func(b *testing.B) {
			s := benchOpen(b, fs)
			defer s.Close()
			var entries []Entry
			for i := range 1000 {
				entries = append(entries, big(i))
			}
			b.ReportAllocs()
			before, i := cpu(), 0
			for b.Loop() {
				e := entries[i%1000]
				if err := s.Begin(Action{Entry: e, Verb: "apply"}); err != nil {
					b.Fatal(err)
				}
				if err := s.End(Result{Resource: e.Resource, LastChanged: 1}); err != nil {
					b.Fatal(err)
				}
				i++
			}
			perOp(b, before, i)
			if m, ok := fs.(*Mem); ok {
				b.ReportMetric(float64(m.Stats().Syncs)/float64(i), "syncs/op")
				b.ReportMetric(float64(m.Stats().Bytes)/float64(i), "written-B/op")
			}
		})
	}
}

// BenchmarkSync is the floor of BenchmarkAction: two appends with two syncs
// and nothing else.
func BenchmarkSync(b *testing.B) {
	fs := Dir(filepath.Join(b.TempDir(), "state"))
	if err := fs.Lock(); err != nil {
		b.Fatal(err)
	}
	defer fs.Unlock()
	if err := fs.Replace(File{"log", nil}); err != nil {
		b.Fatal(err)
	}
	log, err := fs.Append("log")
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	buf := make([]byte, 1200)
	before, i := cpu(), 0
	for b.Loop() {
		for _, p := range [][]byte{buf, buf[:60]} {
			if _, err := log.Write(p); err != nil {
				b.Fatal(err)
			}
			if err := log.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		i++
	}
	perOp(b, before, i)
}

// BenchmarkOpen reads 1,000 entries with specs of 1 KiB, from a snapshot and
// from a journal.
func BenchmarkOpen(b *testing.B) {
	for _, from := range []string{"snapshot", "journal"} {
		b.Run(from, func(b *testing.B) {
			fs := Dir(filepath.Join(b.TempDir(), "state"))
			s, _, err := Open(fs, Options{minCompact: 100 << 20})
			if err != nil {
				b.Fatal(err)
			}
			var all []Action
			for i := range 1000 {
				all = append(all, Action{Entry: big(i)})
			}
			if err := s.Record(all...); err != nil {
				b.Fatal(err)
			}
			if from == "snapshot" {
				if err := s.snapshot(); err != nil {
					b.Fatal(err)
				}
			}
			s.Close()
			b.ReportAllocs()
			before, i := cpu(), 0
			for b.Loop() {
				s := benchOpen(b, fs)
				if len(s.order) != 1000 {
					b.Fatal(len(s.order))
				}
				s.Close()
				i++
			}
			perOp(b, before, i)
		})
	}
}
