//go:build device && linux

package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// publish publishes the scores as the one manifest of the device, and gives its generation.
func (s *site) publish(scores ...score.Score) uint64 {
	s.t.Helper()
	return s.publishAs(manifestName, scores...)
}

func (s *site) publishAs(name string, scores ...score.Score) uint64 {
	s.t.Helper()
	p, err := s.fleet.Publish(s.t.Context(), []score.Manifest{{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: name},
		Spec: score.ManifestSpec{
			Profile: "raspberry-pi", Target: score.Target{Device: s.id.ID}, Policy: score.Policy{Preset: score.Converge}, Scores: scores,
		},
	}}, fleet.PublishOptions{Signer: s.keys.Operator})
	s.must(err)
	return p[0].Generation
}

// state is what the fleet knows of the device now.
func (s *site) state() fleet.DeviceState {
	s.t.Helper()
	st, err := s.fleet.Status(s.t.Context(), s.id)
	s.must(err)
	return st[0]
}

// until waits until what the fleet knows of the device is as ok wants it: ok gives nil.
func (s *site) until(what string, ok func(fleet.DeviceState) error) fleet.DeviceState {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var last fleet.DeviceState
	not := errors.New("nothing is known")
	err := s.fleet.Watch(ctx, []fleet.Device{s.id}, func(st fleet.DeviceState) bool {
		last = st
		if st.Status == nil {
			not = fmt.Errorf("nothing was reported yet (%s)", st.Unreadable)
			return true
		}
		not = ok(st)
		return not != nil
	})
	if err != nil || not != nil {
		s.t.Fatalf("%s: never: %v (%v)\nlast: %s", what, not, err, show(last))
	}
	return last
}

// converged waits until the device reports that it is what generation asks for.
func (s *site) converged(generation uint64) fleet.DeviceState {
	s.t.Helper()
	return s.until(fmt.Sprintf("generation %d converged", generation), func(st fleet.DeviceState) error {
		if !st.Status.ConvergedAt(generation) {
			return fmt.Errorf("it reports generation %d, %s", st.Status.Generation, st.Status.State)
		}
		return nil
	})
}

// outcome waits until the device reports an outcome, and a code, of a score, after a pass: a report from the middle of one
// tells of some scores how they were before.
func (s *site) outcome(generation uint64, id score.ID, want interpret.Outcome, code interpret.Code) interpret.ScoreStatus {
	s.t.Helper()
	var sc interpret.ScoreStatus
	s.until(fmt.Sprintf("score %s is %s %s", id, want, code), func(st fleet.DeviceState) error {
		var ok bool
		if sc, ok = st.Score(manifestName, id); !ok || st.Status.Generation < generation || st.Status.Phase == interpret.PhaseRunning {
			return fmt.Errorf("it reports generation %d, %s", st.Status.Generation, st.Status.Phase)
		}
		if sc.Outcome != want || sc.Code != code {
			return fmt.Errorf("it reports %s %s: %s", sc.Outcome, sc.Code, sc.Message)
		}
		return nil
	})
	return sc
}

// problem waits until the device reports a problem of its agent.
func (s *site) problem(code interpret.Code) interpret.Problem {
	s.t.Helper()
	var p interpret.Problem
	s.until("problem "+string(code), func(st fleet.DeviceState) error {
		for _, p = range st.Status.Problems {
			if p.Code == code {
				return nil
			}
		}
		return fmt.Errorf("it reports %v", st.Status.Problems)
	})
	return p
}

func show(st fleet.DeviceState) string {
	b, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// read decodes the typed state of a score.
func read[O interpret.Observed](t *testing.T, st fleet.DeviceState, id score.ID) O {
	t.Helper()
	sc, ok := st.Score(manifestName, id)
	if !ok {
		t.Fatalf("no status of score %s in %s", id, show(st))
	}
	o, err := interpret.Read[O](sc)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func file(id score.ID, path, content string) score.Score {
	return score.Score{ID: id, Spec: score.File{Path: path, Content: content, Mode: 0o644, Owner: "root", Group: "root"}}
}

// sleeper is a unit file of a service that just runs.
const sleeper = "[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n"

func service(id score.ID, unit, text string) score.Score {
	return score.Score{ID: id, Spec: score.Service{Unit: unit, UnitFile: text, Enabled: new(true), State: score.Running}}
}

func container(id score.ID, name string, command ...string) score.Score {
	if command == nil {
		command = []string{"sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"}
	}
	return score.Score{ID: id, Spec: score.Container{Name: name, Image: image, Command: command, Restart: score.RestartAlways}}
}
