package score_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// Each kind of a release is drafted by a function of its own, which takes its sample as it is.
func TestDraftsOfEachKind(t *testing.T) {
	type draft = *score.Draft[score.RaspberryPi]
	adds := map[score.Kind]func(draft, score.Spec){
		score.KindContainer:        func(d draft, s score.Spec) { score.AddContainer(d, "x", s.(score.Container)) },
		score.KindContainerNetwork: func(d draft, s score.Spec) { score.AddContainerNetwork(d, "x", s.(score.ContainerNetwork)) },
		score.KindDirectory:        func(d draft, s score.Spec) { score.AddDirectory(d, "x", s.(score.Directory)) },
		score.KindEthernet:         func(d draft, s score.Spec) { score.AddEthernet(d, "x", s.(score.Ethernet)) },
		score.KindFile:             func(d draft, s score.Spec) { score.AddFile(d, "x", s.(score.File)) },
		score.KindFirewall:         func(d draft, s score.Spec) { score.AddFirewall(d, "x", s.(score.Firewall)) },
		score.KindHostname:         func(d draft, s score.Spec) { score.AddHostname(d, "x", s.(score.Hostname)) },
		score.KindHosts:            func(d draft, s score.Spec) { score.AddHosts(d, "x", s.(score.Hosts)) },
		score.KindJob:              func(d draft, s score.Spec) { score.AddJob(d, "x", s.(score.Job)) },
		score.KindVolume:           func(d draft, s score.Spec) { score.AddVolume(d, "x", s.(score.NamedVolume)) },
		score.KindService:          func(d draft, s score.Spec) { score.AddService(d, "x", s.(score.Service)) },
		score.KindSymlink:          func(d draft, s score.Spec) { score.AddSymlink(d, "x", s.(score.Symlink)) },
		score.KindTimeSync:         func(d draft, s score.Spec) { score.AddTimeSync(d, "x", s.(score.TimeSync)) },
		score.KindTool:             func(d draft, s score.Spec) { score.AddTool(d, "x", s.(score.Tool)) },
		score.KindWifi:             func(d draft, s score.Spec) { score.AddWifi(d, "x", s.(score.Wifi)) },
	}
	for _, k := range score.Kinds() {
		add := adds[k.Kind]
		if k.Stability == score.Experimental {
			continue
		}
		if add == nil {
			t.Errorf("no function drafts a score of kind %s", k.Kind)
			continue
		}
		d := score.NewDraft[score.RaspberryPi]("m", score.Target{Device: "pi-7"})
		add(d, k.Sample)
		m := d.Manifest()
		for _, p := range m.Validate() {
			if p.Severity == score.Error {
				t.Errorf("%s: %v", k.Kind, p)
			}
		}
		if len(m.Spec.Scores) != 1 || m.Spec.Scores[0].Spec.Kind() != k.Kind {
			t.Errorf("%s: drafted %+v", k.Kind, m.Spec.Scores)
		}
	}
}
