package score

import "fmt"

// Limits bound what a unit, with all its processes, may use. What is left out is not bounded.
type Limits struct {
	// Memory that it may have; beyond it, it is killed.
	Memory Bytes `json:"memory,omitzero" jsonschema:"example=256Mi"`
	// CPU time that it may have, as a share of one processor.
	CPU Percent `json:"cpu,omitzero" jsonschema:"example=50%"`
	// Tasks is how many processes and threads it may have.
	Tasks uint32 `json:"tasks,omitzero" jsonschema:"minimum=1,example=100"`
	// IOWeight is its share of the disk against that of others, which have 100 unless they say otherwise: 1 to 10000.
	IOWeight uint16 `json:"ioWeight,omitzero" jsonschema:"minimum=1,maximum=10000,example=50"`
}

// text is the drop-in that says so.
func (l Limits) text() string {
	s := "[Service]\n"
	if l.Memory != 0 {
		s += fmt.Sprintf("MemoryMax=%d\n", uint64(l.Memory))
	}
	if l.CPU != 0 {
		s += fmt.Sprintf("CPUQuota=%s\n", l.CPU)
	}
	if l.Tasks != 0 {
		s += fmt.Sprintf("TasksMax=%d\n", l.Tasks)
	}
	if l.IOWeight != 0 {
		s += fmt.Sprintf("IOWeight=%d\n", l.IOWeight)
	}
	return s
}

func (l Limits) check(r *Report) {
	if l == (Limits{}) {
		r.Errorf("limits bounds nothing: give memory, cpu, tasks or ioWeight, or leave it out")
	}
	if l.Memory != 0 && (l.Memory < 1<<20 || l.Memory%1024 != 0) {
		r.At("memory").Errorf("memory is %s: want 1Mi or more, in whole Ki", l.Memory)
	}
	if l.IOWeight > 10000 {
		r.At("ioWeight").Errorf("ioWeight is %d: want 1 to 10000", l.IOWeight)
	}
}
