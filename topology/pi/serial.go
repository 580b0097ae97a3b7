package pi

// Serial is the serial number of this machine, as its facts have it; empty if it has none. It is asked for before anything
// of the device is opened.
func Serial() string {
	f := newFacts("", "")
	return f.serial(f.read("proc/cpuinfo", 64<<10))
}

// Model of this machine; empty if it does not tell.
func Model() string {
	f := newFacts("", "")
	return f.model(f.read("proc/cpuinfo", 64<<10))
}

func (f *facts) model(cpuinfo []byte) string {
	return first(f.word("proc/device-tree/model"), field(cpuinfo, "Model"), f.board())
}

func (f *facts) serial(cpuinfo []byte) string {
	return first(f.word("proc/device-tree/serial-number"), field(cpuinfo, "Serial"), f.dmi("product_serial"))
}
