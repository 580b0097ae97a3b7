package main

import "github.com/continuo-fleet/continuo/score"

// AddSignage adds a screen that shows one page and starts afresh every night: the address of the
// page, the service that shows it, and the timer that restarts it.
func AddSignage[P interface {
	score.Files
	score.Services
}](d *score.Draft[P], id score.ID, url string) {
	d.Compose(id, func(d *score.Draft[P]) {
		page := score.AddFile(d, "page", score.File{Path: "/etc/signage.env", Content: "URL=" + url + "\n", Mode: 0o644})
		score.AddService(d, "browser", score.Service{
			Unit: "signage.service", Enabled: new(true), State: score.Running, RestartOn: []score.ID{page.ID()},
			UnitFile: `[Unit]
Description=The page on the screen

[Service]
EnvironmentFile=/etc/signage.env
ExecStart=/usr/bin/cage -- /usr/bin/chromium --kiosk $URL
Restart=always

[Install]
WantedBy=multi-user.target
`,
		})
		afresh := score.AddService(d, "afresh", score.Service{
			Unit:     "signage-afresh.service",
			UnitFile: "[Unit]\nDescription=The page afresh\n\n[Service]\nType=oneshot\nExecStart=/usr/bin/systemctl try-restart signage.service\n",
		})
		score.AddService(d, "nightly", score.Service{
			Unit: "signage-afresh.timer", Enabled: new(true), State: score.Running,
			UnitFile: "[Unit]\nDescription=The page afresh every night\n\n[Timer]\nOnCalendar=*-*-* 04:00:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n",
		})
		d.After(afresh.ID())
	})
}

func signage() score.Manifest {
	d := score.NewDraft[score.PiZero]("signage", score.Target{Device: "pi-7"})
	d.Policy(score.Policy{Preset: score.Converge})
	AddSignage(d, "screen", "https://example.org/departures")
	return d.Manifest()
}
