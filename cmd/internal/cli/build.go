package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
)

// Set by the linker, as internal/release says: -X …/cmd/internal/cli.version=v0.1.0
var (
	version  string // none: not a release
	commit   string // in full
	date     string // of the commit, in UTC; never when it was built, which would make every build another one
	modified string // "true"
)

// A Build says what a binary was made of.
type Build struct {
	// Version of the release, or "devel".
	Version string `json:"version"`
	// Commit that it was built from, if the build knows it.
	Commit string `json:"commit,omitempty"`
	// Date of the commit, in UTC.
	Date string `json:"date,omitempty"`
	// Modified says that the sources were not as in the commit.
	Modified bool `json:"modified,omitempty"`
	// Go version that compiled it.
	Go string `json:"go"`
	// Platform it runs on.
	Platform string `json:"platform"`
}

// ThisBuild describes the running binary.
func ThisBuild() Build {
	b := Build{Version: version, Commit: commit, Date: date, Modified: modified == "true", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if b.Version == "" && ok && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	if ok && b.Commit == "" { // go install, which asks the version control itself
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// VersionCommand prints ThisBuild.
func VersionCommand() *cobra.Command {
	var format show.Format
	cmd := &cobra.Command{
		Use: "version", Short: "Print what this binary was built from", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := ThisBuild()
			if done, err := format.Write(cmd.OutOrStdout(), b); done || err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cmd.Root().Name(), b)
			return err
		},
	}
	format.Flag(cmd.Flags())
	return cmd
}

func (b Build) String() string {
	of := "unknown commit"
	if b.Commit != "" {
		of = "commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Date != "" {
			of += " of " + b.Date
		}
		if b.Modified {
			of += ", modified"
		}
	}
	return fmt.Sprintf("%s (%s, %s, %s)", b.Version, of, b.Go, b.Platform)
}
