//go:build !race

package authority

// every combination is asked.
const every = 1
