//go:build device

package pi

import (
	"os"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// The unit of the agent is left alone under every name that it has, and so is what this process runs in.
func TestAgentsUnitUnderAnotherName(t *testing.T) {
	s := device(t).Services()
	const agents, alias = "/run/systemd/system/continuo-agent.service", "ct-alias.service"
	if _, err := os.Lstat(agents); err == nil {
		t.Fatal("the box has an agent as a service")
	}
	put(t, agents, sleeper)
	sh(t, "ln -s continuo-agent.service /run/systemd/system/"+alias+"; systemctl daemon-reload; systemctl start continuo-agent.service")
	t.Cleanup(func() {
		sh(t, "systemctl stop continuo-agent.service; rm -rf "+agents+" /run/systemd/system/"+alias+" /etc/systemd/system/"+alias+".d; systemctl daemon-reload")
	})
	before := state(t, s, "continuo-agent.service")
	for _, unit := range []string{"continuo-agent.service", alias} {
		for verb, do := range touching(t.Context(), s, unit) {
			if err := do(); err == nil || topology.FaultOf(err).Code != topology.CodeForeign {
				t.Errorf("%s of %s: %v", verb, unit, err)
			}
		}
	}
	if now := state(t, s, "continuo-agent.service"); now.Invocation != before.Invocation || now.Active != "active" || len(now.DropIns) > 0 {
		t.Errorf("it became %+v", now)
	}
}
