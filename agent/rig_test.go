package agent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A rig is a device in memory with an agent's runner and books.
type rig struct {
	t      *testing.T
	dev    *memory.Device
	disk   *store.Mem
	store  *store.Store
	lost   store.Recovered
	runner *agent.Runner
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, dev: memory.New(), disk: store.NewMem()}
	r.start()
	return r
}

// start opens the books as a new process does.
func (r *rig) start() {
	r.t.Helper()
	s, rec, err := store.Open(r.disk, store.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store, r.lost = s, rec
	r.runner = &agent.Runner{Table: standard.Bind(r.dev), Store: s, Files: r.dev.Files(), Uncertain: rec.Lost(),
		Eyes: &health.Eyes{Probes: r.dev.Probes(), Services: r.dev.Services(), Containers: r.dev.Containers()}}
}

// restart kills the agent, keeping what is durable, and starts another.
func (r *rig) restart() {
	r.t.Helper()
	r.disk = r.disk.Crash(store.LoseAll)
	r.start()
}

// loseBooks kills the agent, takes its whole directory away, and starts another.
func (r *rig) loseBooks() {
	r.t.Helper()
	for name := range r.disk.Files() {
		if err := r.disk.Remove(name); err != nil {
			r.t.Fatal(err)
		}
	}
	r.restart()
}

func (r *rig) apply(in agent.Intent) interpret.DeviceStatus {
	r.t.Helper()
	st, err := r.runner.Apply(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// confirm plays in with the consent of a person.
func (r *rig) confirm(in agent.Intent) interpret.DeviceStatus {
	r.t.Helper()
	st, err := r.runner.Confirm(r.t.Context(), in, "by-hand")
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func manifest(name string, scores ...score.Score) score.Manifest {
	return score.Manifest{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: name, Generation: 1},
		Spec: score.ManifestSpec{Target: score.Target{Device: "pi-1"}, Policy: score.Policy{Preset: score.Converge}, Scores: scores},
	}
}

func intent(generation uint64, ms ...score.Manifest) agent.Intent {
	a := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-1", Generation: generation},
		Spec: score.AssignmentSpec{Complete: true, Manifests: ms}}
	for _, m := range ms {
		a.Spec.Scores += len(m.Spec.Scores)
	}
	body, err := score.Encode(a)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(body)
	return agent.Intent{Assignment: a, Generation: generation, Digest: hex.EncodeToString(sum[:]), Envelope: body}
}

// open reads what intent made, as natslink reads a signed envelope.
func open(body []byte) (agent.Intent, error) {
	var a score.Assignment
	if err := score.Decode(body, &a); err != nil {
		return agent.Intent{}, err
	}
	sum := sha256.Sum256(body)
	return agent.Intent{Assignment: a, Generation: a.Metadata.Generation, Digest: hex.EncodeToString(sum[:]), Envelope: body}, nil
}

func file(id score.ID, path, content string, after ...score.ID) score.Score {
	return score.Score{ID: id, After: after, Spec: score.File{Path: path, Content: content, Mode: 0o644}}
}

func service(id score.ID, unit string, restartOn ...score.ID) score.Score {
	return score.Score{ID: id, Spec: score.Service{
		Unit: unit, Enabled: new(true), State: score.Running, RestartOn: restartOn,
		UnitFile: "[Service]\nExecStart=/usr/bin/" + unit + "\n\n[Install]\nWantedBy=multi-user.target\n",
	}}
}

func container(id score.ID, name string) score.Score {
	return score.Score{ID: id, Spec: score.Container{Name: name, Image: "localhost/app:1", Restart: score.RestartAlways}}
}

// outcomes writes a status as "manifest/score=outcome/code …".
func outcomes(st interpret.DeviceStatus) string {
	s := ""
	for _, m := range st.Manifests {
		for _, sc := range m.Scores {
			s += fmt.Sprintf("%s/%s=%s", m.Name, sc.ID, sc.Outcome)
			if sc.Code != "" {
				s += "/" + string(sc.Code)
			}
			s += " "
		}
	}
	return s
}

func (r *rig) want(st interpret.DeviceStatus, want string) {
	r.t.Helper()
	if got := outcomes(st); got != want+" " {
		r.t.Fatalf("got  %s\nwant %s\n%+v", got, want, st.Manifests)
	}
}

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// recorded is a log that can be read.
func recorded() (*logrus.Entry, *bytes.Buffer) {
	l, b := logrus.New(), &bytes.Buffer{}
	l.SetOutput(b)
	return logrus.NewEntry(l), b
}

// bubble runs f on a clock of its own. A test that leaves a goroutine behind fails.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// later lets time go by in a bubble, and then everything settle.
func later(d time.Duration) { time.Sleep(d); synctest.Wait() }

// under gives a manifest another policy.
func under(p score.Policy, m score.Manifest) score.Manifest {
	m.Spec.Policy = p
	return m
}

// preset gives a manifest the policy of a preset.
func preset(p score.Preset, m score.Manifest) score.Manifest {
	return under(score.Policy{Preset: p}, m)
}

// count is how often an operation was called for a resource.
func count(rec *memory.Recorder, op memory.Op, r topology.Resource) (n int) {
	for _, c := range rec.Calls() {
		if c.Op == op && c.Resource == r {
			n++
		}
	}
	return n
}

func scoreOf(st interpret.DeviceStatus, manifest string, id score.ID) (interpret.ScoreStatus, bool) {
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			if m.Name == manifest && s.ID == id {
				return s, true
			}
		}
	}
	return interpret.ScoreStatus{}, false
}
