package main

import (
	"fmt"
	"os"

	"github.com/continuo-fleet/continuo/score"
)

var manifests = map[string]func() score.Manifest{"mosquitto": mosquitto, "nodered": nodered, "signage": signage}

func main() {
	if len(os.Args) != 2 || manifests[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: composites mosquitto|nodered|signage")
		os.Exit(2)
	}
	m := manifests[os.Args[1]]()
	problems := m.Validate()
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if score.Errors(problems) > 0 {
		os.Exit(2)
	}
	out, err := score.Encode(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(out))
}
