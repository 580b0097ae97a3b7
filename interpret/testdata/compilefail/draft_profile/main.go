// Package draft_profile adds a container to a manifest for devices that run none.
package draft_profile

import "github.com/continuo-fleet/continuo/score"

var d = score.NewDraft[score.PiZero]("kiosk", score.Target{Device: "pi-7"})

var _ = score.AddContainer(d, "web", score.Container{Name: "web"}) // want "P \(type score\.PiZero\) does not satisfy score\.Containers \(missing method HasContainers\)"
