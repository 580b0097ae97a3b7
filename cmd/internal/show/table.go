package show

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// A Table is rows of text in columns. The last column is as long as it likes.
type Table struct {
	rows   [][]string
	widths []int
}

// NewTable begins a table with the heads of its columns.
func NewTable(heads ...string) *Table {
	t := &Table{widths: make([]int, len(heads))}
	t.Row(heads...)
	return t
}

// Row adds a row. Cells are one line each, and harmless on a terminal.
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = line(c)
	}
	t.rows = append(t.rows, cells)
	for i, c := range cells[:len(cells)-1] {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
	}
}

// Note adds a line below a row, indented.
func (t *Table) Note(text string) { t.rows = append(t.rows, []string{"    " + line(text)}) }

func line(s string) string { return oneLine.Replace(Plain(s)) }

var oneLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// Write writes the table.
func (t *Table) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, cells := range t.rows {
		pad := 0
		for i, c := range cells {
			if c != "" {
				out.WriteString(strings.Repeat(" ", pad))
				out.WriteString(c)
				pad = 0
			}
			if len(cells) > 1 {
				pad += t.widths[i] - utf8.RuneCountInString(c) + 2
			}
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}
