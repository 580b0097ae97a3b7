package main

import (
	"strings"
	"testing"
)

// A flag that says how to connect is never left out of account: it holds for the server of "continuo up" too.
func TestConnectionFlagsCount(t *testing.T) {
	b := newBench(t)
	b.up()
	file := b.write("no.pem", "nothing")
	for _, args := range [][]string{{"--tlsca", file}, {"--tlscert", file, "--tlskey", file}} {
		code, out, errs := b.run(append([]string{"status"}, args...)...)
		if code != 1 || out != "" || !strings.Contains(errs, "cannot connect") {
			t.Errorf("%s: exit %d: %q %q", args[0], code, out, errs)
		}
	}
	if code, _, errs := b.run("up", "--listen", "127.0.0.1:0", "--data", b.dir+"/other", "--server-ca", file); code != 2 || !strings.Contains(errs, "--server-ca needs --server-cert") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
