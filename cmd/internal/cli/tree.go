package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Tree lists every command and every flag below root, one a line: the catalogue that is
// held in a golden file, so that none appears or goes unnoticed.
func Tree(root *cobra.Command) string {
	var b strings.Builder
	root.InitDefaultCompletionCmd()
	tree(&b, root)
	return b.String()
}

func tree(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "%s\n    %s\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.Short)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		def := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0s" {
			def = fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(b, "    %s %s%s: %s\n", name, f.Value.Type(), def, f.Usage)
	})
	for _, c := range cmd.Commands() {
		b.WriteByte('\n')
		tree(b, c)
	}
}
