package standard_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/timesync"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func init() {
	others["timeSync.servers"] = []func(reflect.Value){set([]string(nil)), set([]string{"198.51.100.1"})}
	others["timeSync.fallback"] = []func(reflect.Value){set([]string(nil)), set([]string{"198.51.100.1"})}
	others["timeSync.timezone"] = []func(reflect.Value){set(""), set("Etc/UTC")}
	others["timeSync.enabled"] = []func(reflect.Value){set((*bool)(nil)), set(new(false))}
}

func TestTimeSync(t *testing.T) {
	r := newRig(t)
	whole := score.TimeSync{Servers: []string{"192.0.2.123"}, Fallback: []string{"198.51.100.1"}, Timezone: "Europe/Berlin", Enabled: new(true)}
	st := r.play(whole)
	r.want(st, interpret.Changed, "")
	o := read[timesync.Observed](t, st)
	if o.Timezone != "Europe/Berlin" || !o.Written || !slices.Equal(o.Servers, whole.Servers) || !slices.Equal(o.Fallback, whole.Fallback) || !o.Enabled || !o.Active {
		t.Errorf("got %+v", o)
	}
	tests := []struct {
		name   string
		change func(*topology.TimeState)
		want   []string
		ops    []memory.Op
	}{
		{"time zone", func(st *topology.TimeState) { st.Timezone = "Etc/UTC" }, []string{"timezone mutate"}, []memory.Op{memory.OpSetTimezone}},
		{"edited", func(st *topology.TimeState) { st.Altered = true }, []string{"file mutate"}, []memory.Op{memory.OpSetTimeServers}},
		{"deleted, and still in force", func(st *topology.TimeState) { st.Written, st.Choice = false, topology.TimeServers{} }, []string{"servers mutate", "fallback mutate"}, []memory.Op{memory.OpSetTimeServers}},
		{"written, and not read: a crash between them", func(st *topology.TimeState) { st.Servers = nil }, []string{"servers mutate"}, []memory.Op{memory.OpSetTimeServers}},
		{"stopped", func(st *topology.TimeState) { st.Active = false }, []string{"enabled mutate"}, []memory.Op{memory.OpSetTimeSync}},
		{"disabled", func(st *topology.TimeState) { st.Enabled = false }, []string{"enabled mutate"}, []memory.Op{memory.OpSetTimeSync}},
	}
	for _, tt := range tests {
		r.settled(whole)
		r.Clock(tt.change)
		rec := r.Record()
		st := r.play(whole)
		r.want(st, interpret.Changed, "")
		if got := fields(st); !slices.Equal(got, tt.want) || !slices.Equal(ops(rec), tt.ops) {
			t.Errorf("%s: %q by %v, want %q by %v", tt.name, got, ops(rec), tt.want, tt.ops)
		}
		r.settled(whole)
	}

	// What is seen and does not count: the clock itself.
	r.Clock(func(st *topology.TimeState) {
		st.Synchronized, st.Measured, st.Offset = true, true, 1234567*time.Microsecond
	})
	o = read[timesync.Observed](t, r.settled(whole))
	if !o.Synchronized || o.Offset == nil || *o.Offset != score.Duration(1200*time.Millisecond) {
		t.Errorf("got %+v", o)
	}

	// What is left out is left as it is.
	r.settled(score.TimeSync{Timezone: "Europe/Berlin"})
	r.settled(score.TimeSync{Enabled: new(true)})

	// Removal takes back the servers, and nothing else.
	rm, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: whole}, interpret.CauseAbsent, &open{})
	if err != nil {
		t.Fatal(err)
	}
	r.want(rm, interpret.Changed, "")
	if o := read[timesync.Observed](t, rm); o.Written || len(o.Servers) > 0 || o.Timezone != "Europe/Berlin" || !o.Active {
		t.Errorf("removed: %+v", o)
	}
}

func TestTimeSyncThatCannotBe(t *testing.T) {
	r := newRig(t)
	st := r.play(score.TimeSync{Timezone: "Mars/Olympus"})
	r.want(st, interpret.Failed, topology.CodeInvalid)
	if st.Path != "/timezone" {
		t.Errorf("told at %q", st.Path)
	}
	// Another program keeps the clock: the time zone can be had all the same.
	r.Clock(func(st *topology.TimeState) { st.Lacks = "chrony keeps the clock" })
	r.want(r.play(score.TimeSync{Servers: []string{"192.0.2.123"}}), interpret.Unsupported, topology.CodeUnavailable)
	r.want(r.play(score.TimeSync{Enabled: new(true)}), interpret.Unsupported, topology.CodeUnavailable)
	r.want(r.play(score.TimeSync{Timezone: "Europe/Berlin"}), interpret.Changed, "")
}
