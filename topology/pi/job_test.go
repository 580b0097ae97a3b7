package pi

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/topology"
)

func TestJobEndedInWords(t *testing.T) {
	tests := []struct {
		result, code, status string
		want                 jobRecord
		err                  string
	}{
		{"success", "exited", "0", jobRecord{Result: topology.JobExited}, ""},
		{"exit-code", "exited", "3", jobRecord{Result: topology.JobExited, ExitCode: 3}, ""},
		{"timeout", "killed", "TERM", jobRecord{Result: topology.JobTimedOut}, ""},
		{"timeout", "exited", "0", jobRecord{Result: topology.JobTimedOut}, ""},
		{"signal", "killed", "SEGV", jobRecord{Result: topology.JobKilled, Signal: "SEGV"}, ""},
		{"signal", "killed", "9", jobRecord{Result: topology.JobKilled, Signal: "KILL"}, ""},
		{"core-dump", "dumped", "ABRT", jobRecord{Result: topology.JobKilled, Signal: "ABRT"}, ""},
		{"oom-kill", "killed", "KILL", jobRecord{Result: topology.JobKilled, Signal: "KILL"}, ""},
		{"resources", "", "", jobRecord{}, `says "resources", ""`},
		{"exit-code", "exited", "many", jobRecord{}, `exit status is "many"`},
		{"", "", "", jobRecord{}, "cannot tell"},
	}
	for _, tt := range tests {
		var got jobRecord
		err := got.ended(tt.result, tt.code, tt.status)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s %s: got %+v, %v", tt.result, tt.code, tt.status, got, err)
		}
	}
}

// TestJobEndedOnce: the first word counts, and where no job began none ended.
func TestJobEndedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs", "x"+jobSuffix)
	env := func(name string) string {
		return map[string]string{"SERVICE_RESULT": "timeout", "EXIT_CODE": "killed", "EXIT_STATUS": "TERM"}[name]
	}
	if err := JobEnded(t.Context(), path, env); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a record of nothing")
	}
	if err := writeJob(path, jobRecord{Digest: "d", Mark: "m/s", Tries: 1, Began: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var first jobRecord
	for i := range 2 {
		if err := JobEnded(t.Context(), path, env); err != nil {
			t.Fatal(err)
		}
		r, err := readJob(path)
		if err != nil || r.Result != topology.JobTimedOut || r.Ended.IsZero() || i > 0 && r != first {
			t.Errorf("got %+v, %v", r, err)
		}
		first = r
	}
}

// TestJobRecordDamaged: a record that cannot be read is no permission to run a job again.
func TestJobRecordDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+jobSuffix)
	for _, text := range []string{"", "\x00\x00\x00\x00", "{", `{"version":1}`, `{"version":2,"digest":"d","tries":1}`, `{"version":1,"digest":"d","tries":1,"ended":"2026-01-01T00:00:00Z"}`,
		`{"version":1,"digest":"d","tries":1,"result":"vanished"}`, strings.Repeat(" ", maxJobRecord+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readJob(path); err == nil || !strings.Contains(err.Error(), "remove "+path) {
			t.Errorf("%.40q: got %v", text, err)
		}
	}
}

// TestJobUnit: arguments reach the program as they are, and what ended is written down with the rights of root.
func TestJobUnit(t *testing.T) {
	j := &jobRunner{dir: "/var/lib/continuo/jobs", ended: []string{"/usr/local/bin/continuo-agent", "job-ended"}}
	c := topology.JobConfig{Name: "backup", Exec: []string{"/usr/bin/backup", "$HOME"}, User: "pi", WorkingDir: "/srv", Env: []string{"A=1"}, Timeout: 90 * time.Second, Success: []int{0, 3}, Digest: "d", Mark: "m/s"}
	got := map[string]string{}
	for _, p := range j.unit(c) {
		got[p.Name] = p.Value.String()
	}
	for name, want := range map[string]string{
		"Type": `"oneshot"`, "TimeoutStartUSec": "@t 90000000", "User": `"pi"`, "WorkingDirectory": `"/srv"`, "Environment": `["A=1"]`,
		"ExecStartEx":       `[("/usr/bin/backup", ["/usr/bin/backup", "$HOME"], ["no-env-expand"],)]`,
		"ExecStopPostEx":    `[("/usr/local/bin/continuo-agent", ["/usr/local/bin/continuo-agent", "job-ended", "/var/lib/continuo/jobs/backup.json"], ["privileged", "no-env-expand"],)]`,
		"SuccessExitStatus": `@(aiai) ([3], [],)`,
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	c.Exec, c.Container = nil, topology.ContainerConfig{Image: "a.b/c:1", Entrypoint: []string{"/bin/x", "y z"}, Command: []string{"--all"}, Env: []string{"A=1"}, Volumes: []string{"/a:/b"}, Network: "none", User: "1000", WorkingDir: "/w"}
	argv := strings.Join(podmanRun(c), " ")
	for _, want := range []string{"/usr/bin/podman run --rm --replace --pull=never", "--name=backup", "--label=continuo.owner=m/s", "--network=none", "--user=1000", "--workdir=/w", "--env=A=1", "--volume=/a:/b", " a.b/c:1 --all"} {
		if !strings.Contains(argv, want) {
			t.Errorf("%q is not in %q", want, argv)
		}
	}
}

func TestJobBelowRoot(t *testing.T) {
	dev, err := Open(t.Context(), Options{Root: t.TempDir(), State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if _, err := dev.Jobs().Job(t.Context(), "x"); topology.FaultOf(err).Code != topology.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if err := dev.Jobs().RunJob(context.Background(), topology.JobConfig{Name: "../x"}); topology.FaultOf(err).Code != topology.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

func FuzzJobRecord(f *testing.F) {
	b, err := json.Marshal(jobRecord{Version: 1, Digest: "d", Mark: "m/s", Tries: 1, Began: time.Unix(1e9, 0), Ended: time.Unix(1e9, 1), Result: topology.JobExited, Output: "hello"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeJob(data)
		if err == nil && (r.Digest == "" || len(r.Output) > topology.LogBytes || !utf8.ValidString(r.Output) || r.Tries < 1) {
			t.Errorf("got %+v", r)
		}
	})
}
