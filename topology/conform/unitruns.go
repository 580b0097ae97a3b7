package conform

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// unitRuns are units that run to their end, that read their configuration again, and what they say.
var unitRuns = []test[ServiceBench]{
	{"reload", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "reload.service")
		b.define(t, u, runs+"ExecReload=/bin/true\n")
		equal(t, "can reload", b.state(t, u).CanReload, true)
		if b.Services.Reload(t.Context(), u) == nil {
			t.Error("a unit that is stopped was reloaded")
		}
		before := b.start(t, u)
		ok(t, b.Services.Reload(t.Context(), u))
		st := b.state(t, u)
		equal(t, "invocation", st.Invocation, before.Invocation)
		equal(t, "active", st.Active, "active")
		b.define(t, u, runs)
		equal(t, "can reload", b.state(t, u).CanReload, false)
		fails(t, b.Services.Reload(t.Context(), u), topology.CodeInvalid)
	}},
	{"run to the end (53)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "once.service")
		b.define(t, u, "[Service]\nType=oneshot\nExecStart=/bin/true\n")
		if r := b.state(t, u).Ran; r != nil {
			t.Fatalf("it never ran, and yet %+v", r)
		}
		ok(t, b.Services.RunOnce(t.Context(), u, "d1"))
		st := b.state(t, u)
		if r := st.Ran; r == nil || r.Digest != "d1" || r.Result != "success" || r.ExitCode != 0 || r.Ended.IsZero() || r.Invocation == "" {
			t.Fatalf("got %+v", r)
		}
		equal(t, "active", st.Active, "inactive")
		first := st.Ran.Invocation
		ok(t, b.Services.RunOnce(t.Context(), u, "d1"))
		if r := b.state(t, u).Ran; r.Invocation == first {
			t.Error("it did not run again")
		}

		b.define(t, u, "[Service]\nType=oneshot\nExecStart="+b.Writes+"\n")
		fails(t, b.Services.RunOnce(t.Context(), u, "d2"), topology.CodeExited)
		r := b.state(t, u).Ran
		if r == nil || r.Digest != "d2" || r.Result != "exit-code" || r.ExitCode != 3 {
			t.Fatalf("got %+v", r)
		}
		if !strings.Contains(r.Output, "the words of the unit") {
			t.Errorf("the output is %q", r.Output)
		}
		b.define(t, u, runs)
		fails(t, b.Services.RunOnce(t.Context(), u, "d3"), topology.CodeInvalid)
		b.define(t, u, remains)
		fails(t, b.Services.RunOnce(t.Context(), u, "d3"), topology.CodeInvalid)
		equal(t, "digest of the last run", b.state(t, u).Ran.Digest, "d2")
		ok(t, b.Services.Undefine(t.Context(), u))
		if r := b.state(t, u).Ran; r != nil {
			t.Errorf("it is gone, and yet %+v", r)
		}
	}},
	{"last words (H43)", func(t *testing.T, b ServiceBench) {
		u := b.unit(t, "words.service")
		b.define(t, u, "[Service]\nExecStart="+b.Writes+"\n")
		fails(t, b.Services.Start(t.Context(), u, false), topology.CodeExited)
		st := b.state(t, u)
		equal(t, "exit code", st.ExitCode, 3)
		for range 2 {
			words, err := b.Services.Log(t.Context(), u, st.Invocation)
			ok(t, err)
			if !strings.Contains(words, "the words of the unit") || words != topology.Excerpt(words) {
				t.Errorf("got %q", words)
			}
		}
		words, err := b.Services.Log(t.Context(), b.Prefix+"no.service", "00000000000000000000000000000000")
		ok(t, err)
		equal(t, "words of a run that never was", words, "")
	}},
}
