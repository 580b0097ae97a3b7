package main

import (
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// AddNodeRED adds Node-RED with its data in a volume, the secret that its credentials are
// encrypted with, and a copy of the volume every night. The volume outlives the container, and
// is destroyed only when somebody signs for that.
func AddNodeRED[P interface {
	score.Files
	score.Services
	score.Containers
}](d *score.Draft[P], id score.ID, secret string) {
	d.Compose(id, func(d *score.Draft[P]) {
		data := score.AddVolume(d, "data", score.NamedVolume{Name: "nodered-data"})
		app := score.AddContainer(d, "app", score.Container{
			Name: "nodered", Image: "docker.io/nodered/node-red:4.0",
			Env:         map[string]score.Value{"NODE_RED_CREDENTIAL_SECRET": score.FromSecret(secret), "TZ": score.Text("UTC")},
			Ports:       []score.Port{{Host: 1880, Container: 1880}},
			Volumes:     []score.Volume{{Source: "nodered-data", Target: "/data"}},
			StopTimeout: score.Duration(30 * time.Second),
			Limits:      &score.ContainerLimits{Memory: 512 << 20},
		})
		d.After(data.ID())
		d.Health(score.Health{Readiness: &score.Probe{HTTP: &score.HTTPProbe{URL: "http://127.0.0.1:1880/"}}})
		backups := score.AddDirectory(d, "backups", score.Directory{Path: "/var/backups/nodered", Mode: 0o700})
		backup := score.AddService(d, "backup", score.Service{
			Unit: "nodered-backup.service",
			UnitFile: "[Unit]\nDescription=A copy of the data of Node-RED\n\n[Service]\nType=oneshot\n" +
				"ExecStart=/usr/bin/podman volume export --output /var/backups/nodered/data.tar nodered-data\n",
		})
		d.After(app.ID(), backups.ID())
		score.AddService(d, "nightly", score.Service{
			Unit: "nodered-backup.timer", Enabled: new(true), State: score.Running,
			UnitFile: "[Unit]\nDescription=A copy of the data of Node-RED every night\n\n[Timer]\nOnCalendar=*-*-* 03:00:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n",
		})
		d.After(backup.ID())
	})
}

func nodered() score.Manifest {
	d := score.NewDraft[score.RaspberryPi]("nodered", score.Target{Device: "pi-7"})
	d.Policy(score.Policy{Preset: score.Guarded})
	AddNodeRED(d, "app", "nodered-credentials")
	return d.Manifest()
}
