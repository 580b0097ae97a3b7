package main

import (
	"os"
	"reflect"
	"testing"

	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

func TestKiosk(t *testing.T) {
	m := kiosk()
	if p := m.Validate(); len(p) > 0 {
		t.Fatalf("the example has problems: %v", p)
	}
	b, err := score.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var back score.Manifest
	if err := score.Decode(b, &back); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("got %+v, %v", back, err)
	}
}

// TestSameAsYAML: both authors write the same manifest.
func TestSameAsYAML(t *testing.T) {
	const path = "../../kiosk.yaml"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, problems := source.Manifest(path, data)
	if len(problems) > 0 || !reflect.DeepEqual(m, kiosk()) {
		t.Errorf("%s is\n%+v, %v, and the program writes\n%+v", path, m, problems, kiosk())
	}
}
