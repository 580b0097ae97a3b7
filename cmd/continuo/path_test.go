package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// up runs `continuo up` for the test.
func (b *bench) up(args ...string) (stop func() int) {
	b.t.Helper()
	out, stop := b.background(append([]string{"up", "--listen", "127.0.0.1:0"}, args...)...)
	out.until(b.t, "Ctrl-C stops the server.")
	return stop
}

// device runs an agent on a device in memory.
func (b *bench) device(id string) *demoAgent {
	b.t.Helper()
	config, err := localnats.Dir(filepath.Join(b.dir, "data")).AddDevice(device(id))
	if err != nil {
		b.t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(b.t.Output())
	dev := memory.New()
	a := &demoAgent{config: config, dev: dev, mem: dev, disk: store.NewMem(), log: logrus.NewEntry(log), closed: func() error { return nil }}
	if err := a.start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(a.finish)
	return a
}

// From a file to a device and back, with the commands that an operator types: H04, H14, H38.
func TestPublishAndStatus(t *testing.T) {
	b := newBench(t)
	stop := b.up("--device", "pi-1")
	pi := b.device("pi-1")
	manifestText := good
	good := b.write("good.yaml", good)

	watch, stopWatch := b.background("watch")
	var all strings.Builder
	step := func(title string, want int, args ...string) (stdout string) {
		t.Helper()
		code, out, errs := b.run(args...)
		if code != want {
			t.Errorf("%s: exit %d, want %d: %s%s", title, code, want, out, errs)
		}
		all.WriteString("# " + title + "\n" + out + errs + "\n")
		return out
	}
	bad := b.write("bad.yaml", scores(file("a", "mode: 0644")))
	step("publish a good and a bad file", 2, "publish", good, bad, "--confirm")
	if _, out, _ := b.run("status", "pi-1", "-o", "json"); strings.Contains(out, `"desired"`) {
		t.Fatalf("something was published: %s", out)
	}
	step("preview", 0, "publish", good)
	if _, out, _ := b.run("status", "pi-1", "-o", "json"); strings.Contains(out, `"desired"`) {
		t.Fatalf("a preview published: %s", out)
	}
	step("publish and wait", 0, "publish", good, "--confirm", "--wait")
	if got, _ := pi.mem.Read("/etc/kiosk.conf"); got != "hello" {
		t.Errorf("the device has %q", got)
	}
	step("publish the same once more", 0, "publish", good, "--confirm")
	step("status of all", 0, "status")
	step("status of one", 0, "status", "pi-1", "--wait")
	less := b.write("less.yaml", strings.ReplaceAll(manifestText, "conf", "motd"))
	step("preview of what is removed", 0, "publish", less)
	step("status of an unknown device", 1, "status", "pi-9")
	// The first heartbeat may have come before there was anybody to hear it, and the device may have looked once more
	// and found nothing to change: all of that is right.
	text := regexp.MustCompile(`reported \S+Z`).ReplaceAllString(all.String(), "alive")
	text = regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
	text = regexp.MustCompile(`conf  file  (changed  standing:converge  intent\n  present: false → true|unchanged  standing:converge)`).ReplaceAllString(text, "conf  file  changed or unchanged")
	golden.Check(t, "publish.txt", text)

	var o struct {
		Counts  map[fleet.Verdict]int `json:"counts"`
		Devices []struct {
			Device  string        `json:"device"`
			Verdict fleet.Verdict `json:"verdict"`
			Desired uint64        `json:"desired"`
		} `json:"devices"`
	}
	decode(t, step("json", 0, "status", "-o", "json"), &o)
	if o.Counts[fleet.Converged] != 1 || len(o.Devices) != 1 || o.Devices[0].Desired != 1 || o.Devices[0].Device != "main.pi-1" {
		t.Errorf("got %+v", o)
	}
	watch.until(t, " pi-1 converged, generation 1, 1/1 converged")
	if code := stopWatch(); code != 0 {
		t.Errorf("watch: exit %d: %s", code, watch)
	}

	// What it cannot do is told, and the exit code says that it is not done.
	pi.mem.Mkdir("/etc/taken")
	taken := b.write("taken.yaml", strings.Replace(scores(strings.ReplaceAll(file("a", `mode: "0644"`), "/etc/a", "/etc/taken")), "kiosk}", "taken}", 1))
	code, out, _ := b.run("publish", taken, "--confirm", "--wait")
	if code != 1 || !strings.Contains(out, "not_regular") || !strings.Contains(out, "failed") {
		t.Errorf("exit %d: %s", code, out)
	}
	// A name that nobody answers to is told, and waiting for it ends.
	typo := b.write("typo.yaml", strings.Replace(scores(file("a", `mode: "0644"`)), "pi-1", "pi-l", 1))
	if code, _, errs := b.run("publish", typo); code != 0 || !strings.Contains(errs, "pi-l was never heard of: if its name is right") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := b.run("publish", typo, "--confirm", "--wait", "--timeout", "1s"); code != 1 || !strings.Contains(errs, "gave up waiting after 1s") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code := stop(); code != 0 {
		t.Errorf("up: exit %d", code)
	}
	// The operator can still read nothing, and is told why.
	if code, _, errs := b.run("status"); code != 1 || !strings.Contains(errs, "is the server running? continuo up starts one") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Nothing is published whatever is wrong with the input, and no server is needed to say so.
func TestPublishBadInput(t *testing.T) {
	b := newBench(t)
	for _, tt := range badInput {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := b.runWith(tt.in, "publish", "-", "--confirm")
			if code != 2 || out != "" || !strings.HasPrefix(errs, "standard input:") || !strings.HasSuffix(errs, "\nnothing was published\n") {
				t.Errorf("exit %d: %q %.300q", code, out, errs)
			}
		})
	}
}

// The configuration that up writes for a device names a key file and holds no key.
func TestUpWritesAgentConfigurations(t *testing.T) {
	b := newBench(t)
	out, stop := b.background("up", "--listen", "127.0.0.1:0", "--device", "pi-1", "--device", "cabin.pi-1")
	out.until(t, "Ctrl-C stops the server.")
	for _, want := range []string{"device pi-1\n", "device cabin.pi-1\n", "continuo-agent run --config " + b.dir + "/data/agents/pi-1/agent.yaml --root DIR --state DIR"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("up does not say %q:\n%s", want, out)
		}
	}
	file := filepath.Join(b.dir, "data/agents/cabin.pi-1/agent.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: AgentConfig\n", "device: \"pi-1\"\n", "site: \"cabin\"\n", "  - \"nats://127.0.0.1:", "credentials: {type: creds, file: \"" + b.dir + "/data/devices/cabin.pi-1.creds\"}\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "\"SU") || strings.Contains(string(text), "\"SA") {
		t.Errorf("a key is in\n%s", text)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	code, _, errs := b.run("up", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(errs, "another server is running there") {
		t.Errorf("a second up: exit %d: %s", code, errs)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// setup and serve work on a server that somebody else runs.
func TestSetupAndServe(t *testing.T) {
	b := newBench(t)
	b.up()
	code, out, errs := b.run("setup")
	if code != 0 || out != "every stream is there and as it must be\n" {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
	control := filepath.Join(b.dir, "data/users/control.creds")
	url, err := os.ReadFile(filepath.Join(b.dir, "data/url"))
	if err != nil {
		t.Fatal(err)
	}
	serve, stop := b.background("serve", "--server", strings.TrimSpace(string(url)), "--creds", control)
	serve.until(t, "control service is running")
	if code := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, serve)
	}
	if code, out, _ := b.run("status"); code != 0 || !strings.HasPrefix(out, "no device is known") {
		t.Errorf("exit %d: %s", code, out)
	}
}
