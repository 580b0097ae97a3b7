//go:build device && linux

package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	icontainer "github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// Text stays what it was, byte for byte, from a manifest to a path, a process and podman, and back: emoji, quotes,
// what shells and systemd would expand, lines, and two spellings of one letter. What is no longer wanted goes, and its
// twin stays (case 45).
func TestTextOnTheWholeWay(t *testing.T) {
	t.Parallel()
	const rocket, family = "\U0001F680", "\U0001F468\u200d\U0001F469\u200d\U0001F467" // the second is of five runes
	const composed, decomposed = "caf\u00e9 " + rocket, "cafe\u0301 " + rocket
	s := online(t, box.Options{})
	s.run("pibox-image")
	values := []string{
		rocket, family, composed, decomposed, `"` + rocket + `" 'it''s'`, "100% %h %%" + rocket, "$HOME ${HOME} $$ `id`" + rocket,
		`back\slash \n \x41 ` + rocket, "# ; " + rocket + " #", " " + rocket + "  ", "a=b=" + rocket, "two\nlines" + rocket + "\tand a tab",
	}
	web := container("web", "web", "sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait", rocket)
	c := web.Spec.(score.Container)
	c.Command = append(c.Command, values...)
	c.Env = map[string]score.Value{}
	var env []string
	for i, v := range values {
		if !strings.Contains(v, "\n") { // podman takes a line break in an argument, and not in a variable
			name := fmt.Sprintf("TEXT%02d", i)
			c.Env[name] = score.Text(v)
			env = append(env, name+"="+v)
		}
	}
	web.Spec = c
	twins := []score.Score{file("composed", "/srv/"+composed+".txt", composed+"\n"), file("decomposed", "/srv/"+decomposed+".txt", decomposed+"\n")}
	st := s.converged(s.publish(append(twins, web)...))

	has := func(what string, got, want []string) {
		t.Helper()
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s has no %q:\n%q", what, w, got)
			}
		}
	}
	process := func(file string) []string {
		t.Helper()
		return strings.Split(s.sh("cat /proc/$(podman inspect web --format '{{.State.Pid}}')/"+file), "\x00")
	}
	has("the environment of the process", process("environ"), env)
	if got := process("cmdline"); !slices.Equal(got[:len(got)-1], c.Command) {
		t.Errorf("the arguments of the process are\n%q\nwant\n%q", got, c.Command)
	}
	lines := func(format string) []string {
		t.Helper()
		return strings.Split(s.run("podman", "inspect", "web", "--format", format), "\x00")
	}
	has("the environment that podman tells", lines("{{range .Config.Env}}{{.}}{{printf \"\\x00\"}}{{end}}"), env)
	if got := lines("{{range .Config.Cmd}}{{.}}{{printf \"\\x00\"}}{{end}}"); !slices.Equal(got[:len(got)-1], c.Command) {
		t.Errorf("the arguments that podman tells are\n%q\nwant\n%q", got, c.Command)
	}
	for _, name := range []string{composed, decomposed} {
		if got := s.run("cat", "/srv/"+name+".txt"); got != name {
			t.Errorf("%q holds %q", name, got)
		}
	}

	// The same again is no change, and one of two twins goes alone.
	id := read[icontainer.Observed](t, st, "web").ID
	g := s.publish(twins[1], web)
	s.until("what is no longer wanted is gone", func(st fleet.DeviceState) error {
		if sc, _ := st.Score(manifestName, "web"); !st.Status.ConvergedAt(g) || sc.Outcome != interpret.Unchanged || len(st.Status.Orphans) > 0 {
			return fmt.Errorf("it is %s, the container %s, with orphans %v", st.Status.State, sc.Outcome, st.Status.Orphans)
		}
		return nil
	})
	if got := s.run("podman", "inspect", "web", "--format", "{{.Id}}"); got != id {
		t.Errorf("the container is %s, and was %s", got, id)
	}
	if got := s.sh("cd /srv; ls -N *.txt"); got != decomposed+".txt" {
		t.Errorf("there is %q", got)
	}
}
