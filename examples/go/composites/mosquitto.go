package main

import (
	"fmt"

	"github.com/continuo-fleet/continuo/score"
)

// Broker says how the broker of a device is to be.
type Broker struct {
	Port uint16
	From []string // networks that clients come from
	// Firewall of the device, of which there is one: what it lets in besides.
	Firewall score.Firewall
}

// AddBroker adds a Mosquitto broker: its configuration, the container that reads it again when
// it changes, and the firewall that lets its clients in.
func AddBroker[P interface {
	score.Files
	score.Containers
	score.Firewalls
}](d *score.Draft[P], id score.ID, b Broker) {
	d.Compose(id, func(d *score.Draft[P]) {
		conf := score.AddFile(d, "conf", score.File{
			Path: "/etc/mosquitto/mosquitto.conf", Mode: 0o644,
			Content: fmt.Sprintf("listener %d\nallow_anonymous true\npersistence true\npersistence_location /mosquitto/data/\n", b.Port),
		})
		data := score.AddVolume(d, "data", score.NamedVolume{Name: "mosquitto-data"})
		score.AddContainer(d, "server", score.Container{
			Name: "mosquitto", Image: "docker.io/library/eclipse-mosquitto:2.0",
			Ports: []score.Port{{Host: b.Port, Container: b.Port}},
			Volumes: []score.Volume{
				{Source: "/etc/mosquitto", Target: "/mosquitto/config", ReadOnly: true},
				{Source: "mosquitto-data", Target: "/mosquitto/data"},
			},
			ReloadOn: []score.ID{conf.ID()},
		})
		d.After(data.ID())
		d.Health(score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: b.Port}}})
		f := b.Firewall
		f.Allow = append(f.Allow[:len(f.Allow):len(f.Allow)], score.Allow{Ports: []score.PortSpan{{First: b.Port}}, From: b.From})
		score.AddFirewall(d, "firewall", f)
	})
}

func mosquitto() score.Manifest {
	d := score.NewDraft[score.RaspberryPi]("mosquitto", score.Target{Device: "pi-7"})
	d.Policy(score.Policy{Preset: score.Guarded})
	AddBroker(d, "broker", Broker{
		Port: 1883, From: []string{"192.0.2.0/24"},
		Firewall: score.Firewall{Input: score.InputDrop, Allow: []score.Allow{{Ports: []score.PortSpan{{First: 22}}}}},
	})
	return d.Manifest()
}
