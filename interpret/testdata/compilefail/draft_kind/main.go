// Package draft_kind adds a service where a file is wanted.
package draft_kind

import "github.com/continuo-fleet/continuo/score"

var d = score.NewDraft[score.RaspberryPi]("kiosk", score.Target{Device: "pi-7"})

var _ score.Ref[score.File] = score.AddFile(d, "conf", score.Service{Unit: "a.service"}) // want "cannot use score\.Service\{…\} .* as score\.File value in argument to score\.AddFile"
