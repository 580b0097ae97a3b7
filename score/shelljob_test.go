//go:build shelljob

package score_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestShellJobIsExperimental: it is marked, and a manifest must say that it allows for that; and it names programs (H78, H79).
func TestShellJobIsExperimental(t *testing.T) {
	info, ok := score.Lookup(score.KindShellJob)
	if !ok || info.Stability != score.Experimental {
		t.Fatalf("got %+v", info)
	}
	for field, effect := range info.Effects {
		if effect != "destroy" && field != "timeout" {
			t.Errorf("%s has the effect %s: a policy could cover it", field, effect)
		}
	}
	for _, tt := range []struct {
		change func(*score.ShellJob)
		want   string
	}{
		{func(s *score.ShellJob) { s.Verify = nil }, "check needs a program"},
		{func(s *score.ShellJob) { s.Exec = []string{"rm -rf /"} }, "exec needs a program"},
		{func(s *score.ShellJob) { s.Exec[1] = "a\x00" }, "NUL byte"},
		{func(s *score.ShellJob) { s.Name = "Two Words" }, "name"},
		{func(s *score.ShellJob) { s.Timeout = score.Duration(1e15) }, "timeout"},
		{func(*score.ShellJob) {}, ""},
	} {
		s := info.Sample.(score.ShellJob)
		s.Exec = append([]string(nil), s.Exec...)
		tt.change(&s)
		r := score.NewReport()
		s.Check(r)
		text := ""
		for _, p := range r.Problems() {
			text += p.Text
		}
		if (tt.want == "") != (text == "") || !strings.Contains(text, tt.want) {
			t.Errorf("got %q, want %q", text, tt.want)
		}
	}
}
