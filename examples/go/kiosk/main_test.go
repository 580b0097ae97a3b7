package main

import (
	"reflect"
	"testing"

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
