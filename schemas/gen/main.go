// Command gen writes the JSON Schemas of the documents from the Go types that carry them,
// with the doc comments of the fields as descriptions. A field without one fails it.
//
// It is run by go generate ./schemas, or from the root of the module. The schemas are
// committed, and package schemas embeds them, so that nothing else links the generator.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := toRoot(); err != nil {
		return err
	}
	files, err := Generate()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join("schemas", name+".json"), files[name], 0o644); err != nil {
			return fmt.Errorf("cannot write a schema: %w", err)
		}
	}
	return nil
}

// toRoot makes the root of the module the working directory: comments are found by paths
// relative to it only.
func toRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return os.Chdir(dir)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return errors.New("cannot find go.mod: run it inside the module")
		}
		dir = up
	}
}
