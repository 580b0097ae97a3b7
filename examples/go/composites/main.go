package main

import (
	"fmt"
	"io"
	"os"

	"github.com/continuo-fleet/continuo/score"
)

var manifests = map[string]func() score.Manifest{"mosquitto": mosquitto, "nodered": nodered, "signage": signage}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 || manifests[args[0]] == nil {
		fmt.Fprintln(stderr, "usage: composites mosquitto|nodered|signage")
		return 2
	}
	return write(manifests[args[0]](), stdout, stderr)
}

// write prints a manifest, or what is wrong with it.
func write(m score.Manifest, stdout, stderr io.Writer) int {
	problems := m.Validate()
	for _, p := range problems {
		fmt.Fprintln(stderr, p)
	}
	if score.Errors(problems) > 0 {
		return 2
	}
	out, err := score.Encode(m)
	if err == nil {
		_, err = fmt.Fprintln(stdout, string(out))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
