// Command composites shows three composites to copy: a broker, an application with data and a
// nightly backup, and a kiosk that is woken by a timer. A composite is a function that adds its
// members to a draft: it needs no new agent, the ids of its members are below its own, and its
// state on a device is the fold of theirs. What P must have, the compiler checks: on a
// score.PiZero, which runs no containers, the first two do not compile.
//
// The program prints the manifest of one of them, which is also in examples/*.yaml as authors
// of YAML write it.
package main
