// Command kiosk is the manifest of examples/kiosk.yaml, written in Go. It prints it as
// JSON, for `continuo validate -` and `continuo publish -`.
//
// Add a container to a draft for score.PiZero, and this program does not compile.
package main

import (
	"fmt"
	"os"

	"github.com/continuo-fleet/continuo/score"
)

func main() {
	m := kiosk()
	problems := m.Validate()
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if score.Errors(problems) > 0 {
		os.Exit(2)
	}
	out, err := score.Encode(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(out))
}

func kiosk() score.Manifest {
	d := score.NewDraft[score.RaspberryPi]("kiosk", score.Target{Device: "pi-7"})
	d.Policy(score.Policy{Preset: score.Converge})

	score.AddHostname(d, "name", score.Hostname{Name: "kiosk-7"})

	page := score.AddFile(d, "page", score.File{
		Path:    "/srv/kiosk/index.html",
		Content: "<!doctype html>\n<title>Welcome</title>\n<h1>Welcome</h1>\n",
		Mode:    0o644,
	})
	web := score.AddContainer(d, "web", score.Container{
		Name:    "kiosk-web",
		Image:   "docker.io/library/nginx:1.27",
		Ports:   []score.Port{{IP: "127.0.0.1", Host: 8080, Container: 80}},
		Volumes: []score.Volume{{Source: "/srv/kiosk", Target: "/usr/share/nginx/html", ReadOnly: true}},
	})
	d.After(page.ID()).Health(score.Health{
		Readiness: &score.Probe{HTTP: &score.HTTPProbe{URL: "http://127.0.0.1:8080/"}},
		Liveness:  &score.Probe{Container: "kiosk-web"},
	})

	conf := score.AddFile(d, "conf", score.File{
		Path: "/etc/kiosk.conf", Content: "url=http://127.0.0.1:8080/\n", Mode: 0o640, Owner: "root",
	})
	score.AddService(d, "kiosk", score.Service{
		Unit: "kiosk.service", Enabled: new(true), State: score.Running,
		UnitFile:  unitFile,
		RestartOn: []score.ID{conf.ID()},
	})
	d.After(web.ID())
	return d.Manifest()
}

const unitFile = `[Unit]
Description=Kiosk
After=kiosk-web.service

[Service]
EnvironmentFile=/etc/kiosk.conf
ExecStart=/usr/bin/sleep infinity
Restart=on-failure

[Install]
WantedBy=multi-user.target
`
