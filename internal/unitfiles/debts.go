package unitfiles

import (
	"maps"
	"sync"
)

// Debts are the units that a service manager has to read again: before anything depends on
// them, or later, when what is loaded does no harm until then. The zero value is none.
type Debts struct {
	mu         sync.Mutex
	marks      uint64
	now, later map[string]uint64 // by unit, the last mark
}

// Add notes that a unit, or Every, is to be read again before anything depends on it.
func (d *Debts) Add(unit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.note(d.now, unit)
}

// AddLater notes that a unit is to be read again at some time.
func (d *Debts) AddLater(unit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later = d.note(d.later, unit)
}

func (d *Debts) note(in map[string]uint64, unit string) map[string]uint64 {
	if in == nil {
		in = map[string]uint64{}
	}
	d.marks++
	in[unit] = d.marks
	return in
}

// Defer lets what is owed to a unit wait.
func (d *Debts) Defer(unit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, owed := d.now[unit]; owed {
		delete(d.now, unit)
		d.later = d.note(d.later, unit)
	}
}

// Owed reports whether any of some units, all names of one, is to be read again before anything depends on it.
func (d *Debts) Owed(names ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return owed(d.now, names)
}

// Deferred reports whether any of some units is to be read again later.
func (d *Debts) Deferred(names ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return owed(d.later, names)
}

func owed(in map[string]uint64, names []string) bool {
	if len(in) == 0 {
		return false
	}
	if _, all := in[Every]; all {
		return true
	}
	for _, name := range names {
		_, itself := in[name]
		_, its := in[template(name)]
		if itself || its {
			return true
		}
	}
	return false
}

// Any reports whether anything is owed: before anything depends on it, or at all.
func (d *Debts) Any() (now, atAll bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.now) > 0, len(d.now)+len(d.later) > 0
}

// Marks counts what was owed so far.
func (d *Debts) Marks() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marks
}

// Pay strikes what was owed when there were so many marks.
func (d *Debts) Pay(marks uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	paid := func(_ string, mark uint64) bool { return mark <= marks }
	maps.DeleteFunc(d.now, paid)
	maps.DeleteFunc(d.later, paid)
}

// Forgive strikes what was owed to a unit before anything depends on it, when there were so many marks: it was
// read in another way. It reports whether nothing is owed to it now.
func (d *Debts) Forgive(unit string, marks uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mark, owed := d.now[unit]; owed && mark <= marks {
		delete(d.now, unit)
	}
	return !owed(d.now, []string{unit})
}
