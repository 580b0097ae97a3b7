package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// sizes builds the binaries of devices and prints their sizes.
func sizes(b *suite) error {
	for _, t := range []struct{ arch, arm string }{{"arm64", ""}, {"arm", "7"}, {"arm", "6"}, {"amd64", ""}} {
		out := filepath.Join(b.dir, "agent-"+t.arch+t.arm)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "./cmd/continuo-agent")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+t.arch, "GOARM="+t.arm)
		if msg, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build for %s: %s", t.arch, msg)
		}
		st, err := os.Stat(out)
		if err != nil {
			return err
		}
		fmt.Printf("%-44s %.2f MB\n", "continuo-agent "+t.arch+t.arm+", stripped", float64(st.Size())/1e6)
	}
	return nil
}
