// Package health finds out whether what scores describe works: a Judge makes a verdict of
// single looks, a Watch does the looking, and a Budget says when what hangs may be
// restarted.
//
// It executes nothing, changes nothing and keeps no books. It knows neither policies nor
// manifests: what a verdict leads to, above all a restart, is for others to decide. Its
// memory is that of the process; an agent that starts knows nothing, and looks at once.
package health
