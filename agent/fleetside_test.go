package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
)

// fleetSide is a Link that only remembers.
type fleetSide struct {
	handler   chan agent.Handler
	reported  chan interpret.DeviceStatus
	receipts  chan interpret.Receipt
	informed  chan interpret.DeviceInfo
	asked     chan interpret.ApprovalRequests
	onConnect func()
}

func newFleetSide() *fleetSide {
	return &fleetSide{make(chan agent.Handler, 1), make(chan interpret.DeviceStatus, 1000), make(chan interpret.Receipt, 1000), make(chan interpret.DeviceInfo, 1000), make(chan interpret.ApprovalRequests, 1000), func() {}}
}

func (f *fleetSide) Run(ctx context.Context, h agent.Handler) {
	f.onConnect()
	f.handler <- h
	<-ctx.Done()
}

func (f *fleetSide) Report(_ context.Context, st interpret.DeviceStatus) error {
	f.reported <- st
	return nil
}

func (f *fleetSide) Inform(_ context.Context, i interpret.DeviceInfo) error {
	f.informed <- i
	return nil
}

func (f *fleetSide) Ask(_ context.Context, r interpret.ApprovalRequests) error {
	f.asked <- r
	return nil
}

func (f *fleetSide) Send(_ context.Context, r interpret.Receipt) error {
	f.receipts <- r
	return nil
}

// running starts an agent on r inside a synctest bubble and gives what the fleet sees.
func (r *rig) running(change ...func(*agent.Config)) (a *agent.Agent, f *fleetSide, h agent.Handler, stop func()) {
	f = newFleetSide()
	c := agent.Config{Runner: r.runner, Recovered: r.lost, Open: open, Link: f, Events: r.dev.Events(), Device: "pi-1", Log: quiet()}
	for _, ch := range change {
		ch(&c)
	}
	a = agent.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return a, f, <-f.handler, stop
}

// offer hands an intent to the device, which takes it.
func offer(t *testing.T, h agent.Handler, in agent.Intent) {
	t.Helper()
	if err := h.Offer(in); err != nil {
		t.Fatal(err)
	}
}

// last is the newest report.
func (f *fleetSide) last() (st interpret.DeviceStatus) {
	for {
		select {
		case st = <-f.reported:
		default:
			return st
		}
	}
}

// ask hands an operation to the device and returns the answer.
func (f *fleetSide) ask(t *testing.T, h agent.Handler, op interpret.Operation) interpret.Receipt {
	t.Helper()
	if op.ID == "" {
		op.ID = "op-" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "-")
	}
	op.Expires = time.Now().Add(time.Hour)
	if err := h.Operation(op, "digest-of-"+string(op.Verb)+op.Plan); err != nil {
		t.Fatal(err)
	}
	later(time.Second)
	return f.answer(t, op.ID)
}

// answer is the last receipt of an operation that was sent.
func (f *fleetSide) answer(t *testing.T, id string) (last interpret.Receipt) {
	t.Helper()
	for {
		select {
		case r := <-f.receipts:
			if r.ID == id {
				last = r
			}
		default:
			if last.ID == "" {
				t.Fatalf("no receipt of %s came", id)
			}
			return last
		}
	}
}

// plan is the plan of now.
func (f *fleetSide) plan(t *testing.T, h agent.Handler) interpret.Plan {
	t.Helper()
	return *f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
}

func withLog(log *logrus.Entry) func(*agent.Config) { return func(c *agent.Config) { c.Log = log } }
