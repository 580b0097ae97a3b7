//go:build race

package authority

// Nothing here runs beside anything: under the race detector a part is enough.
const every = 31
