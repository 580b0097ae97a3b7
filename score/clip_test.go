package score

import (
	"strings"
	"testing"
)

// What is decoded may come from anybody: an error about it is short, whatever is in it.
func TestDecodeErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"an unknown field":     `{"` + long + `":1}`,
		"a field twice":        `{"` + long + `":1,"` + long + `":1}`,
		"fields below fields":  strings.Repeat(`{"`+long[:1000]+`":`, 100) + "!",
		"lists below lists":    `{"spec":` + strings.Repeat("[", 20000),
		"text for a mapping":   `"` + long + `"`,
		"letters of no script": `{"` + strings.Repeat("\xf0\x9f\x92\xa5", 1000) + `":1}`,
		"a word of nothing":    long,
	} {
		var m Manifest
		err := Decode([]byte(text), &m)
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %d bytes", name, len(err.Error()))
		}
	}
	if got := (&DecodeError{"/spec/scores/3", "no"}).Error(); got != "cannot decode /spec/scores/3: no" {
		t.Errorf("got %q", got)
	}
}
