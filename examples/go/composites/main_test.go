package main

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// TestSameAsYAML: each composite is valid, survives its encoding, and is what its YAML says (H33, X31).
func TestSameAsYAML(t *testing.T) {
	for name, manifest := range manifests {
		t.Run(name, func(t *testing.T) {
			m := manifest()
			if p := m.Validate(); len(p) > 0 {
				t.Fatalf("the example has problems: %v", p)
			}
			path := "../../" + name + ".yaml"
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if written, problems := source.Manifest(path, data); len(problems) > 0 || !reflect.DeepEqual(written, m) {
				t.Errorf("%s is\n%+v, %v, and the program writes\n%+v", path, written, problems, m)
			}
		})
	}
}

// TestMembersAreBelow: every member carries the id of its composite, and one firewall keeps what the device had.
func TestMembersAreBelow(t *testing.T) {
	d := score.NewDraft[score.RaspberryPi]("two", score.Target{Device: "pi-7"})
	AddBroker(d, "broker", Broker{Port: 8883, Firewall: score.Firewall{Input: score.InputDrop, Allow: []score.Allow{{Ports: []score.PortSpan{{First: 22}}}}}})
	AddSignage(d, "screen", "https://example.org/")
	m := d.Manifest()
	if p := m.Validate(); score.Errors(p) > 0 {
		t.Fatal(p)
	}
	for _, s := range m.Spec.Scores {
		if len(s.ID) < 7 || s.ID[:7] != "broker/" && s.ID[:7] != "screen/" {
			t.Errorf("%q is below no composite", s.ID)
		}
		if f, ok := s.Spec.(score.Firewall); ok && len(f.Allow) != 2 {
			t.Errorf("the firewall lets in %v", f.Allow)
		}
	}
}

// TestRun: what the program prints is a manifest, and nothing but a manifest goes to its standard output.
func TestRun(t *testing.T) {
	for name, manifest := range manifests {
		var stdout, stderr strings.Builder
		if rc := run([]string{name}, &stdout, &stderr); rc != 0 || stderr.Len() > 0 {
			t.Errorf("%s: exit status %d, %s", name, rc, stderr.String())
		}
		var m score.Manifest
		if err := score.Decode([]byte(stdout.String()), &m); err != nil || !reflect.DeepEqual(m, manifest()) {
			t.Errorf("%s: printed %s, which is %+v, %v", name, stdout.String(), m, err)
		}
	}
	for _, args := range [][]string{nil, {"broker"}, {"nodered", "signage"}} {
		var stdout, stderr strings.Builder
		if rc := run(args, &stdout, &stderr); rc != 2 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "usage: composites ") {
			t.Errorf("%q: exit status %d, %q, %q", args, rc, stdout.String(), stderr.String())
		}
	}
}

// TestWriteRefuses: a manifest with an error is not printed, and what is wrong with it is.
func TestWriteRefuses(t *testing.T) {
	d := score.NewDraft[score.RaspberryPi]("two", score.Target{Device: "pi-7"})
	AddNodeRED(d, "app", "nodered-credentials")
	AddNodeRED(d, "again", "nodered-credentials")
	var stdout, stderr strings.Builder
	if rc := write(d.Manifest(), &stdout, &stderr); rc != 2 || stdout.Len() > 0 {
		t.Errorf("exit status %d, printed %q", rc, stdout.String())
	}
	for _, want := range []string{"nodered-data", "1880", "nodered-backup.timer", "/var/backups/nodered"} { // each of these is there once
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("nothing is told of %s in:\n%s", want, stderr.String())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestWriteFails: a manifest that could not be printed as a whole is a failure.
func TestWriteFails(t *testing.T) {
	var stderr strings.Builder
	if rc := write(signage(), full{}, &stderr); rc != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit status %d, %q", rc, stderr.String())
	}
}
