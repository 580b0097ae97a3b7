package score_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestUsersComeAfterMakers(t *testing.T) {
	volume := score.Score{ID: "data", Spec: score.NamedVolume{Name: "data"}}
	network := score.Score{ID: "net", Spec: score.ContainerNetwork{Name: "net"}}
	between := score.Score{ID: "between", After: []score.ID{"data"}, Spec: score.Hostname{Name: "pi"}}
	user := func(after ...score.ID) score.Score {
		return score.Score{ID: "web", After: after, Spec: score.Container{
			Name: "web", Image: "registry.example.org/web:1", Network: "net",
			Volumes: []score.Volume{{Source: "data", Target: "/data"}, {Source: "elsewhere", Target: "/other"}, {Source: "/srv", Target: "/srv"}},
		}}
	}
	tests := []struct {
		name   string
		scores []score.Score
		want   []string // in the problems
	}{
		{"after both", []score.Score{volume, network, user("data", "net")}, []string{"uses volume:elsewhere, which no score"}},
		{"after one that comes after", []score.Score{volume, network, between, user("between", "net")}, []string{"uses volume:elsewhere, which no score"}},
		{"after neither", []score.Score{volume, network, user()}, []string{`uses containerNetwork:net`, `uses volume:data, which score "data" makes`, "uses volume:elsewhere, which no score"}},
		{"nobody makes them", []score.Score{user()}, []string{
			"uses containerNetwork:net, which no score", "uses volume:data, which no score of the manifest makes", "uses volume:elsewhere, which no score",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "m"}, Spec: score.ManifestSpec{
				Target: score.Target{Device: "pi"}, Scores: tt.scores,
			}}
			problems := m.Validate()
			if len(problems) != len(tt.want) {
				t.Fatalf("problems: %v", problems)
			}
			for i, want := range tt.want {
				if !strings.Contains(problems[i].Text, want) {
					t.Errorf("problem %q, want %q", problems[i], want)
				}
			}
		})
	}
}
