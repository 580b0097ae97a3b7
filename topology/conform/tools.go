package conform

import (
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A ToolBench is a device with programs to look at.
type ToolBench struct {
	Tools topology.ToolReader
	// Present is a program that works and says its version, and Missing one that is not there.
	Present, Missing string
	// Shadow puts a program of the name of Present that does not work before it, and gives its path; undone by the caller.
	Shadow func() (path string, err error)
}

// Tools is the suite of a device with programs.
func Tools(t *testing.T, bench func(*testing.T) ToolBench) { suite(t, bench, toolTests) }

var toolTests = []test[ToolBench]{
	{"present", func(t *testing.T, b ToolBench) {
		for range 2 {
			st, err := b.Tools.Tool(t.Context(), b.Present)
			ok(t, err)
			if st.Condition() != topology.ToolPresent || st.Copies[0].Path == "" || st.Copies[0].Version == "" || st.Copies[0].Why != "" {
				t.Errorf("got %+v", st)
			}
		}
	}},
	{"missing", func(t *testing.T, b ToolBench) { // G08
		st, err := b.Tools.Tool(t.Context(), b.Missing)
		ok(t, err)
		equal(t, "condition", st.Condition(), topology.ToolMissing)
	}},
	{"every device has some", func(t *testing.T, b ToolBench) {
		for _, name := range topology.DefaultTools {
			st, err := b.Tools.Tool(t.Context(), name)
			ok(t, err)
			if len(st.Copies) > 0 && st.Copies[0].Works && st.Copies[0].Version == "" {
				t.Errorf("%s works and has no version: %+v", name, st)
			}
		}
		for _, name := range []string{topology.ToolAgent, topology.ToolKernel} {
			st, err := b.Tools.Tool(t.Context(), name)
			ok(t, err)
			equal(t, name, st.Condition(), topology.ToolPresent)
		}
	}},
	{"shadowed", func(t *testing.T, b ToolBench) { // G51
		before, err := b.Tools.Tool(t.Context(), b.Present)
		ok(t, err)
		path, err := b.Shadow()
		hands(t, err)
		st, err := b.Tools.Tool(t.Context(), b.Present)
		ok(t, err)
		if st.Condition() != topology.ToolShadowed || len(st.Copies) != len(before.Copies)+1 || st.Copies[0].Path != path || st.Copies[0].Works || st.Copies[0].Why == "" || st.Copies[1] != before.Copies[0] {
			t.Errorf("got %+v, want %s before %+v", st, path, before)
		}
	}},
	{"name that is none", func(t *testing.T, b ToolBench) {
		for _, name := range []string{"", ".", "..", "../bin/sh", "/bin/sh", "two words", "-v", "a\x00b", "a;b"} {
			_, err := b.Tools.Tool(t.Context(), name)
			fails(t, err, topology.CodeInvalid)
		}
	}},
	{"canceled", func(t *testing.T, b ToolBench) {
		_, err := b.Tools.Tool(canceled(t), b.Present)
		fails(t, err, topology.CodeCanceled)
	}},
}
