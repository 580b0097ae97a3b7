package score

// FactNames are the facts of a device that a text template may use, sorted. A device that
// does not know one refuses the template. See topology.Facts.Text.
//
// Facts are what a device says of itself: they fill in texts, and select nothing. Which
// devices a manifest is for is decided by the signed inventory alone.
var FactNames = []string{"arch", "cpus", "hostname", "kernel", "memoryMiB", "model", "os", "osCodename", "osName", "osVersion", "serial"}
