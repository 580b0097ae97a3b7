package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
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

// What was published before a failure is not passed over: the devices will act on it.
func TestHalfPublished(t *testing.T) {
	failure := errors.New("cannot publish for main.pi-3: no space")
	made := func() []fleet.Publication {
		change := []fleet.ManifestChange{{Name: "a", Action: fleet.Added, Generation: 1}}
		return []fleet.Publication{
			{Device: fleet.Device{Site: "main", ID: "pi-1"}, Generation: 7, Written: true, Manifests: change},
			{Device: fleet.Device{Site: "main", ID: "pi-2"}, Generation: 4, Manifests: change},
		}
	}
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	err := halfPublished(cmd, made(), "", failure)
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), "published before that: 1 device") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "pi-1    7           a         added") || strings.Contains(out.String(), "pi-2") {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	err = halfPublished(cmd, made(), show.JSON, failure)
	var docs []any
	if !errors.Is(err, failure) || json.Unmarshal(out.Bytes(), &docs) != nil || len(docs) != 1 {
		t.Errorf("got %v, %s", err, out.String())
	}
	out.Reset()
	if err := halfPublished(cmd, made()[1:], "", failure); err != failure || out.Len() > 0 {
		t.Errorf("nothing was published: %v, %s", err, out.String())
	}
}

// A control service of one's own beside "continuo up" connects as one: it may do what it must.
func TestServeBesideUp(t *testing.T) {
	b := newBench(t)
	b.up()
	out, stop := b.background("serve")
	out.until(t, "control service is running")
	for range 3 { // the server has answered everything before by then
		b.run("status")
	}
	if code := stop(); code != 0 || strings.Contains(out.String(), "not allowed") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, n := range []string{"0", "-1", "2", "7"} {
		if code, _, errs := b.run("setup", "--replicas", n); code != 2 || !strings.Contains(errs, "--replicas is "+n) {
			t.Errorf("exit %d: %s", code, errs)
		}
	}
}

// A data directory that cannot be looked into is said to be so, and nothing else is used in its place.
func TestUnusableDataDirectory(t *testing.T) {
	b := newBench(t)
	file := b.write("file", "")
	code, out, errs := b.run("status", "--data", file)
	if code != 1 || out != "" || errs != "continuo: cannot find the server of continuo up: stat DIR/file/url: not a directory; --server names another\n" {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
}
