package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// signatures measures what a device does with each document before it looks at what it says: signature, digest, reading of 50
// scores, and whether the trust root lets who signed say all of it.
func signatures(b *suite) error {
	root, err1 := nkeys.CreateAccount()
	publisher, err2 := nkeys.CreateAccount()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("cannot make keys: %v %v", err1, err2)
	}
	public := func(kp nkeys.KeyPair) string { s, _ := kp.PublicKey(); return s }
	r := trust.New("bench",
		trust.Key{Key: public(root), Name: "root", Roles: []trust.Role{trust.RoleRoot}},
		trust.Key{Key: public(publisher), Name: "publisher", Roles: []trust.Role{trust.RolePublisher}, Scope: trust.Scope{
			Devices: []string{"main.*"}, Kinds: []score.Kind{"file"}, Policy: &score.Policy{Preset: score.Converge}}})
	m := score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "m"}}
	for i := range 50 {
		m.Spec.Scores = append(m.Spec.Scores, score.Score{ID: score.ID(fmt.Sprintf("f%d", i)), Spec: score.File{
			Path: fmt.Sprintf("/etc/kiosk/conf.d/%02d.conf", i), Content: optionLines(i), Mode: 0o644}})
	}
	as := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-1", Generation: 1}}
	as.Spec.Manifests = []score.Manifest{m}
	payload, err := score.Encode(as)
	if err != nil {
		return err
	}
	d := wire.Device{Site: "main", ID: "pi-1"}
	st := wire.Statement{Kind: wire.KindDevice, Audience: d.String(), Generation: 1, Epoch: 1, Encoding: wire.EncodingGzip, Media: wire.MediaAssignment}
	frame, err := wire.Seal(st, payload, publisher)
	if err != nil {
		return err
	}
	keys, err := r.Documents()
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const times = 100
	var took []time.Duration
	for range b.runs {
		began := cpuTime() // the machine is shared
		for range times {
			v, err := wire.Verify(frame, keys, wire.Expect{Kind: wire.KindDevice, Audience: d.String()})
			if err != nil {
				return err
			}
			opened, err := v.Open()
			if err != nil {
				return err
			}
			var read score.Assignment
			if err := score.Decode(opened, &read); err != nil {
				return err
			}
			if refusal := r.CheckDocument(v.By, d, read); refusal != nil {
				return refusal
			}
		}
		took = append(took, (cpuTime()-began)/times)
	}
	slices.Sort(took)
	fmt.Printf("%-44s %.2f ms of CPU, %d bytes as carried, %d opened\n", "verify and read 50 scores, one core", float64(took[len(took)/2])/1e6, len(frame), len(payload))
	return nil
}

// cpuTime is what this process has used of processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func optionLines(n int) string {
	text := ""
	for line := range 12 {
		text += fmt.Sprintf("option_%d_%d = value-%x\n", n, line, (n+7)*(line+3)*7919%10007)
	}
	return text
}
