package main

import (
	"os"
	"reflect"
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
