// Package show writes statuses for people and documents for programs. It decides
// nothing and reads nothing.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/continuo-fleet/continuo/score"
)

// A Format is how a command writes its result: "" for people, json or yaml.
type Format string

// Formats for programs.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// Flag adds -o.
func (f *Format) Flag(flags *pflag.FlagSet) {
	flags.VarP(f, "output", "o", "write a document for programs: json or yaml")
}

// String, Set and Type make it the value of a flag.
func (f *Format) String() string { return string(*f) }

// Set takes json or yaml.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case JSON, YAML:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("must be json or yaml")
}

// Type is what the help calls the value.
func (f *Format) Type() string { return "format" }

// Write writes v if a format for programs was asked for, and tells whether it did.
func (f Format) Write(w io.Writer, v any) (done bool, err error) {
	if f == "" {
		return false, nil
	}
	compact, err := score.Encode(v)
	if err != nil {
		return true, fmt.Errorf("cannot write the result: %w", err)
	}
	var out bytes.Buffer
	if f == YAML {
		err = writeYAML(&out, compact)
	} else if err = json.Indent(&out, compact, "", "  "); err == nil {
		out.WriteByte('\n')
	}
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return true, fmt.Errorf("cannot write the result: %w", err)
	}
	return true, nil
}

// writeYAML writes JSON as YAML in block style, in the same order.
func writeYAML(w io.Writer, doc []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(doc, &n); err != nil {
		return err
	}
	plain(&n)
	out, err := yaml.Marshal(&n)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}
