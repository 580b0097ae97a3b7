package natslink

import (
	"fmt"
	"slices"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// maxReport is what a status may have: the fleet takes 64 KiB with headers from a device.
const maxReport = 63 << 10

// encodeStatus writes st, and leaves out details until it fits. The states of manifests and device were folded over
// everything before, and stay.
func encodeStatus(st interpret.DeviceStatus) ([]byte, error) {
	body, err := score.Encode(st)
	if err != nil {
		return nil, fmt.Errorf("cannot report: %w", err)
	}
	whole := len(body)
	steps := []struct {
		left string
		cut  func(*interpret.DeviceStatus)
	}{
		{"the states of what has converged", func(st *interpret.DeviceStatus) {
			each(st, func(s *interpret.ScoreStatus) {
				if s.Converged() {
					s.Observed, s.Changes, s.Message = nil, nil, ""
				}
			})
		}},
		{"everything but outcomes", func(st *interpret.DeviceStatus) {
			each(st, func(s *interpret.ScoreStatus) {
				*s = interpret.ScoreStatus{ID: s.ID, Kind: s.Kind, Outcome: s.Outcome, Code: s.Code, Conditions: s.Conditions, ObservedGeneration: s.ObservedGeneration}
			})
		}},
		{"what has converged", func(st *interpret.DeviceStatus) {
			for i := range st.Manifests {
				m := &st.Manifests[i]
				m.Scores = slices.DeleteFunc(m.Scores, interpret.ScoreStatus.Converged)
			}
		}},
		{"all but ten scores of each manifest", func(st *interpret.DeviceStatus) {
			for i := range st.Manifests {
				m := &st.Manifests[i]
				m.Scores = m.Scores[:min(10, len(m.Scores))]
			}
			st.Orphans = st.Orphans[:min(10, len(st.Orphans))]
			n := min(10, len(st.Unmanaged))
			st.Unmanaged, st.UnmanagedMore = st.Unmanaged[:n], st.UnmanagedMore+uint64(len(st.Unmanaged)-n)
		}},
		{"every score", func(st *interpret.DeviceStatus) {
			for i := range st.Manifests {
				st.Manifests[i].Scores = nil
			}
			st.Manifests = st.Manifests[:min(100, len(st.Manifests))]
			st.Unmanaged, st.UnmanagedMore = nil, st.UnmanagedMore+uint64(len(st.Unmanaged))
			st.Orphans, st.Problems = nil, st.Problems[:min(10, len(st.Problems))]
			for i := range st.Problems {
				st.Problems[i].Message = st.Problems[i].Message[:min(500, len(st.Problems[i].Message))]
			}
		}},
	}
	if whole > maxReport {
		st = copyStatus(st)
	}
	for _, step := range steps {
		if len(body) <= maxReport {
			return body, nil
		}
		step.cut(&st)
		said := st
		said.Problems = append(slices.Clone(st.Problems), interpret.Problem{Code: CodeShortened,
			Message: fmt.Sprintf("the report had %d bytes and at most %d can be sent; left out is %s: ask the device itself for the rest", whole, maxReport, step.left)})
		if body, err = score.Encode(said); err != nil {
			return nil, fmt.Errorf("cannot report: %w", err)
		}
	}
	if len(body) > maxReport {
		return nil, fmt.Errorf("cannot report: a status of %d bytes does not fit in %d", whole, maxReport)
	}
	return body, nil
}

func each(st *interpret.DeviceStatus, f func(*interpret.ScoreStatus)) {
	for i := range st.Manifests {
		for j := range st.Manifests[i].Scores {
			f(&st.Manifests[i].Scores[j])
		}
	}
}

// copyStatus copies everything that is cut: the caller keeps its own.
func copyStatus(st interpret.DeviceStatus) interpret.DeviceStatus {
	st.Manifests = slices.Clone(st.Manifests)
	for i := range st.Manifests {
		st.Manifests[i].Scores = slices.Clone(st.Manifests[i].Scores)
	}
	st.Orphans, st.Problems = slices.Clone(st.Orphans), slices.Clone(st.Problems)
	return st
}
