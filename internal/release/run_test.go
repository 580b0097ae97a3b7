package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// What the command says, and what it does not take.
func TestRun(t *testing.T) {
	t.Chdir(small(t))
	out := filepath.Join(t.TempDir(), "out")
	for name, tt := range map[string]struct {
		args []string
		want string // in the output, or in the error of those that fail
		ok   bool
	}{
		"help":                {[]string{"-h"}, "", true},
		"stamp":               {[]string{"-stamp"}, "-X ", true},
		"a build":             {[]string{"-only", "amd64", "-commands", "continuo", "-o", out}, "continuo-linux-amd64", true},
		"two commits":         {[]string{"HEAD", "HEAD"}, "one commit is built at a time", false},
		"no commit":           {[]string{"v9.9.9"}, "cannot find the commit", false},
		"no target":           {[]string{"-only", "vax"}, "vax", false},
		"a flag nobody knows": {[]string{"-nothing"}, "nothing", false},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			err := run(t.Context(), tt.args, &said)
			text := said.String()
			if err != nil {
				text = err.Error()
			}
			if (err == nil) != tt.ok || !strings.Contains(text, tt.want) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
