package pi

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// cpu reports the processor time of the process per operation, which is what a Pi pays;
// the wall clock of a write is mostly that of its disk.
func cpu(b *testing.B) {
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
	b.Cleanup(func() {
		_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
		ns := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(ns)/float64(max(b.N, 1)), "cpu-ns/op")
	})
}

func benchFile(i int) topology.FileWrite {
	return topology.FileWrite{
		Path: fmt.Sprintf("/etc/conf.d/%03d.conf", i%1000), Content: []byte("url=https://example.org/\n"), Mode: 0o644,
		Owner: "root", Group: "root", Mark: "kiosk/conf",
	}
}

func BenchmarkFile(b *testing.B) {
	f, _ := below(b)
	for i := range 1000 {
		if err := f.WriteFile(b.Context(), benchFile(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu(b)
	for i := range b.N {
		if st, err := f.File(b.Context(), benchFile(i).Path); err != nil || st.Mark == "" {
			b.Fatal(st, err)
		}
	}
}

func BenchmarkWriteFile(b *testing.B) {
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			f, _ := below(b)
			b.ReportAllocs()
			cpu(b)
			lanes := make(chan struct{}, parallel)
			for i := range b.N {
				lanes <- struct{}{}
				go func() {
					defer func() { <-lanes }()
					if err := f.WriteFile(b.Context(), benchFile(i)); err != nil {
						b.Error(err)
					}
				}()
			}
			for range parallel {
				lanes <- struct{}{}
			}
		})
	}
}
